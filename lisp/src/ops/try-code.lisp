;;;; `try-code`: definitions evaluated in a confined copy of the image, followed by code or tests
;;;; that use them. The copy reports the outcomes of both, the number of calls of each new function,
;;;; and those of their forms that did not run.

(in-package :consort)

(defun tests-here (package)
  "Runs the tests of PACKAGE and prints each failure. Two values: the number of tests that passed,
  and the number of the others."
  (let ((passed 0) (others 0))
    (dolist (case (cases-meant nil nil '() :package (find-package-named package)) (values passed others))
      (let ((result (run-case case '())))
        (cond ((equal (field result "status") "passed") (incf passed))
              (t (incf others)
                 (format t "~A: ~A~%~@[~{  ~A~%~}~]" (field result "name") (field result "status")
                         (map 'list (lambda (failure) (field failure "message")) (field result "failures")))))))))

(defun no-package-outcome (name)
  "The JSON of EvalOutcome for a definition in a package that does not exist."
  (let ((evaluation (make-evaluation 0 nil)))
    (setf (evaluation-error evaluation) (error-facts "PACKAGE-NOT-FOUND" (format nil "Package ~A not found: load its system first." name)))
    (outcome evaluation :error :package "COMMON-LISP-USER")))

(defun counted-function (name package)
  "A cons of NAME and the number of calls from now on of the function that has the name in PACKAGE;
  NIL if there is no such function."
  (let* ((symbol (let ((*package* package) (*read-eval* nil))
                   (ignore-errors (read-from-string name))))
         (count (cons name 0)))
    (when (and symbol (symbolp symbol) (fboundp symbol) (not (macro-function symbol)) (not (special-operator-p symbol)))
      (encapsulate symbol 'consort-try (lambda (function &rest arguments)
                                         (sb-ext:atomic-incf (cdr count))
                                         (apply function arguments)))
      count)))

(defun code-in-copy (params code package)
  "Two values: the JSON of EvalOutcome for CODE in PACKAGE, or, if that is NIL, in that of the
  session of PARAMS; and a text about a refusal, or NIL."
  (outcome-in-copy params #'settings-of-session
                   (lambda (evaluation timeout)
                     (evaluate evaluation code :package package :timing (eq (field params "capture_time") :true) :deadline timeout))))

(defun try-forms (params)
  "Evaluates the definitions of PARAMS until one fails. Four values: their outcomes; the counted
  functions; a text about a refusal, or NIL; and the definitions that note which of their forms run,
  as from COVER-DEFINITIONS."
  (let ((outcomes '()) (counts '()) (refused nil) (covered '()))
    (loop for form across (field params "forms")
          for name = (field form "package")
          for package = (package-called name)
          for (outcome words) = (if package
                                    (multiple-value-list (code-in-copy params (field form "code") package))
                                    (list (no-package-outcome name) nil))
          do (push outcome outcomes)
             (setf refused (or refused words))
          while (equal (field outcome "status") "ok")
          do (setf covered (append covered (cover-definitions (field form "code") package)))
             (loop for function across (field form "functions")
                   for count = (counted-function function package)
                   when count do (push count counts)))
    (values (nreverse outcomes) (nreverse counts) refused covered)))

(defun trial (params)
  "The JSON of Trial, in a copy that is confined as it should be."
  (multiple-value-bind (outcomes counts refused covered) (try-forms params)
    (let ((outcome nil))
      (when (and (plusp (length (field params "code"))) (every (lambda (outcome) (equal (field outcome "status") "ok")) outcomes))
        (multiple-value-bind (last words)
            (code-in-copy params (field params "code") (let ((name (field params "package"))) (and name (package-called name))))
          (setf outcome last
                refused (or refused words))))
      (object "forms" (coerce outcomes 'vector)
              "outcome" (or-null outcome)
              "calls" (map 'vector (lambda (count) (object "name" (car count) "calls" (cdr count))) counts)
              "coverage" (if outcome (map 'vector (lambda (entry) (coverage-json (car entry) (cdr entry))) covered) #())
              "refused" (or-null refused)))))

(defun try-in-copy (params)
  "Does the work of the copy: everything after the fork."
  (let ((report (begin-in-copy params)))
    (setf *checking* nil)               ; the compiler prints its usual output
    (multiple-value-bind (confined why) (confine-copy params report)
      (send-line report (object "answer" (if confined
                                             (trial params)
                                             (object "forms" (vector (unconfined-outcome why)) "outcome" :null "calls" #() "coverage" #() "refused" :null)))
                 :flush t))
    (report-done report '())))

(define-operation "try-code" :thread (id params)
  (param params "forms" 'vector)
  (param params "code" 'string)
  (param params "session" 'string)
  (param params "timeout" '(real (0)))
  (check-check-params params)
  (answer-from-copy id params 'try-in-copy))
