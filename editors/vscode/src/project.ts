// A new project: a system, its package, and tests that need no library. No `vscode` here.

/** The packages of SBCL, ASDF and Consort that a name may be; SBCL's own begin with `sb-`. */
const LISP_PACKAGES = ['asdf', 'asdf-action', 'asdf-user', 'asdf-utilities', 'cl', 'cl-user', 'common-lisp', 'common-lisp-user', 'consort', 'keyword', 'sequence', 'uiop']

/** Why a name cannot be a system's; undefined when it can. */
export function wrongName(name: string): string | undefined {
  if (!/^[a-z][a-z0-9-]*[a-z0-9]$/.test(name)) return 'Lower-case letters, digits and hyphens, beginning with a letter: my-project'
  if (FILES.includes(mainFile(name))) return `A project has a file ${mainFile(name)} for something else`
  if (LISP_PACKAGES.includes(name) || name.startsWith('sb-')) return `Lisp itself has a package ${name}`
  return undefined
}

/** The files of a project whose names do not come from its own. */
const FILES = ['package.lisp', 'tests.lisp']

/** The file that a person begins with. */
export const mainFile = (name: string): string => `${name}.lisp`

/** The files of a project, by their names. */
export function projectFiles(name: string): Record<string, string> {
  return {
    [`${name}.asd`]: `(defsystem "${name}"
  :description "What ${name} is for."
  :version "0.1.0"
  :serial t
  :components ((:file "package")
               (:file "${name}"))
  :in-order-to ((test-op (test-op "${name}/tests"))))

(defsystem "${name}/tests"
  :depends-on ("${name}")
  :components ((:file "tests"))
  :perform (test-op (operation component)
             (symbol-call :${name}/tests :run)))
`,
    'package.lisp': `(defpackage :${name}
  (:use :cl)
  (:export #:greeting))
`,
    [mainFile(name)]: `(in-package :${name})

(defun greeting (name)
  "Greets somebody by NAME."
  (format nil "Hello, ~A!" name))

;; Not loaded, for you to try: put the cursor into it and press Alt+Enter.
#+(or)
(greeting "Lisp")
`,
    'tests.lisp': `(defpackage :${name}/tests
  (:use :cl)
  (:export #:run))
(in-package :${name}/tests)

(defun run ()
  "Signals an error when a test fails."
  (assert (equal (${name}:greeting "Lisp") "Hello, Lisp!")))
`,
  }
}
