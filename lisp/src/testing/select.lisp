;;;; The tests that a request selects, their places, and their systems.

(in-package :consort)

;;; Names

(defun name-matches-p (name wanted)
  "Returns true if WANTED, as a person writes it (`NAME` or `PACKAGE::NAME`, in any case), means
  NAME, a symbol or string."
  (let* ((colon (position #\: wanted :from-end t))
         (package (and colon (string-right-trim ":" (subseq wanted 0 colon))))
         (bare (if colon (subseq wanted (1+ colon)) wanted)))
    (and (string-equal (string name) bare)
         (or (null package) (string= package "")
             (and (symbolp name) (symbol-package name) (eq (symbol-package name) (package-called package)))))))

(defun test-case-package (case)
  (let ((name (test-case-name case)))
    (and (symbolp name) (symbol-package name))))

(defun select-cases (cases &key suite test package packages)
  "Returns the selected CASES. They are limited to PACKAGES, unless that is :ALL."
  (remove-if-not (lambda (case)
                   (and (or (null test) (name-matches-p (test-case-name case) test))
                        (or (null suite) (find-if (lambda (name) (name-matches-p name suite)) (test-case-suites case)))
                        (or (null package) (eq (test-case-package case) package))
                        (or (eq packages :all) (member (test-case-package case) packages))))
                 cases))

;;; Systems

(defun declared-test-systems (system)
  "The names of the systems to which the `test-op` of SYSTEM, ASDF's object, delegates."
  (let ((entry (find-if (lambda (entry) (member (first entry) '(asdf:test-op :test-op)))
                        (ignore-errors (funcall (find-symbol "COMPONENT-IN-ORDER-TO" "ASDF") system)))))
    (loop for (operation . names) in (rest entry)
          when (member operation '(asdf:test-op asdf:load-op :test-op :load-op))
            append (mapcar #'system-name-text names))))

(defun usual-test-systems (system)
  "The usual names of test systems for the system named SYSTEM."
  (mapcar (lambda (suffix) (concatenate 'string system suffix)) '("/tests" "/test" "-tests" "-test" ".test" ".tests")))

(defun test-system-names (system)
  "The systems to which the `test-op` of SYSTEM delegates. If there are none, the existing systems
  among those with usual names of test systems."
  (or (declared-test-systems (ignore-errors (asdf:find-system system)))
      (remove-if-not (lambda (name) (asdf:find-system name nil)) (usual-test-systems system))))

(defun system-name-text (name)
  (typecase name
    (asdf:component (asdf:component-name name))
    (string (string-downcase name))
    (symbol (string-downcase (symbol-name name)))
    (t (string-downcase (princ-to-string name)))))

(defun component-files (component)
  (typecase component
    (asdf:source-file (list (asdf:component-pathname component)))
    (asdf:parent-component (mapcan #'component-files (copy-list (asdf:component-children component))))))

(defun system-files (name)
  "The source files of the system NAME and of the systems on which it depends that are of the same
  family (`app`, `app/tests`)."
  (let ((seen '())
        (family (asdf:primary-system-name name)))
    (labels ((walk (name)
               (let ((system (and (stringp name) (not (member name seen :test #'string=))
                                  (string= (asdf:primary-system-name name) family)
                                  (asdf:find-system name nil))))
                 (when system
                   (push name seen)
                   (append (component-files system)
                           (mapcan (lambda (dependency) (walk (dependency-name dependency)))
                                   (copy-list (asdf:system-depends-on system))))))))
      (walk name))))

(defun file-of-package (package)
  (let ((source (ignore-errors (first (sb-introspect:find-definition-sources-by-name (intern (package-name package) :keyword) :package)))))
    (and source (sb-introspect:definition-source-pathname source))))

(defun packages-of-files (files)
  (let ((names (remove nil (mapcar (lambda (file) (ignore-errors (truename file))) files))))
    (remove-if-not (lambda (package)
                     (let ((file (file-of-package package)))
                       (and file (member (ignore-errors (truename file)) names :test #'equal))))
                   (list-all-packages))))

;;; Places. SBCL does not record the tests of a framework as definitions, so files are searched for
;;; `(test NAME`.

(defun test-place (name files)
  "Two values: the first of FILES that defines the test NAME, and the line, 1-based; NIL if there is
  none."
  (dolist (file files)
    (let ((line (ignore-errors
                 (with-open-file (in file :external-format '(:utf-8 :replacement #\?))
                   (loop for text = (read-line in nil)
                         for number from 1
                         while text
                         when (defines-test-p text (string name)) return number)))))
      (when line
        (return (values file line))))))

(defun system-place (name)
  "Two values: the file that defines the ASDF system NAME, and the line of its definition, 1-based;
  NIL if they are not found."
  (let* ((system (asdf:find-system name nil))
         (file (and system (asdf:system-source-file system))))
    (when file
      (let ((line (ignore-errors
                   (with-open-file (in file :external-format '(:utf-8 :replacement #\?))
                     (loop for text = (read-line in nil)
                           for number from 1
                           while text
                           when (defines-system-p text name) return number)))))
        (values file (or line 1))))))

(defun defines-system-p (text name)
  "Returns true if the line TEXT begins the definition of the ASDF system NAME."
  (let* ((start (search "defsystem" text :test #'char-equal))
         (end (and start (+ start (length "defsystem"))))
         (at (and end (position-if-not (lambda (char) (or (blank-p char) (find char "#:'\"|"))) text :start end)))
         (stop (and at (> at end) (+ at (length name)))))
    (and stop
         (<= stop (length text))
         (string-equal name (subseq text at stop))
         (or (= stop (length text)) (find (char text stop) " ()\"|	")))))

(defun defines-test-p (text name)
  "Returns true if the line TEXT begins a definition of the test NAME in the syntax of any of the
  frameworks."
  (let* ((start (position-if-not #'blank-p text))
         (end (and start (char= (char text start) #\() (position-if #'blank-p text :start start))))
    (when end
      (let* ((operator (subseq text (1+ start) end))
             (operator (subseq operator (let ((colon (position #\: operator :from-end t))) (if colon (1+ colon) 0))))
             (at (position-if-not (lambda (char) (or (blank-p char) (find char "(#:'\"|"))) text :start end)))
        (and at
             (member operator '("test" "def-test" "deftest" "define-test" "define-test+run") :test #'string-equal)
             (let ((stop (+ at (length name))))
               (and (<= stop (length text))
                    (string-equal name (subseq text at stop))
                    (or (= stop (length text)) (find (char text stop) " ()\"|	")))))))))

(defun files-about (package)
  "Returns the files that may contain the tests of PACKAGE: the package's file, and the files of
  that file's system."
  (let* ((file (and package (file-of-package package)))
         (truename (and file (ignore-errors (truename file)))))
    (when truename
      (cons file (loop for name in (asdf:already-loaded-systems)
                       for files = (ignore-errors (component-files (asdf:find-system name nil)))
                       when (member truename files :test (lambda (a b) (equal a (ignore-errors (truename b)))))
                         append files)))))
