;;;; A test whether SBCL's reader reads the same from two files, object by object, for
;;;; text_edits.rs.
;;;;
;;;; Standard input: two paths, each on a line, and so on. Standard output: a line for each pair:
;;;; the number of objects, or how they differ. Packages that are missing are made; `#.` is read and
;;;; not evaluated.

(defvar *unevaluating-readtable*
  (let ((readtable (copy-readtable nil)))
    (set-dispatch-macro-character #\# #\. (lambda (stream sub-char argument)
                                            (declare (ignore sub-char argument))
                                            (list :read-time (read stream t nil t)))
                                  readtable)
    readtable))

(defun make-missing-package (condition)
  (let ((name (package-error-package condition)))
    (when (and (stringp name) (not (find-package name)))
      (make-package name :use '())
      (throw 'again nil))))

(defun objects (text)
  "The objects in TEXT, each as it prints."
  (let ((*readtable* *unevaluating-readtable*) (*package* (find-package '#:scratch)))
    (loop
      (catch 'again
        (return
          (handler-bind ((package-error #'make-missing-package)
                         ;; A symbol that is not external, or not there.
                         (reader-error #'continue))
            (with-input-from-string (stream text)
              (loop with eof = '#:eof
                    for object = (read stream nil eof)
                    until (eq object eof)
                    collect (with-standard-io-syntax
                              (let ((*print-circle* t) (*print-readably* nil) (*package* (find-package '#:scratch)))
                                (prin1-to-string object)))))))))))

(defun file-text (path)
  (with-open-file (in path :external-format '(:utf-8 :replacement #\?))
    (with-output-to-string (out)
      (loop for char = (read-char in nil)
            while char
            do (write-char char out)))))

(defun main ()
  (make-package '#:scratch :use '(#:cl))
  (loop for first = (read-line *standard-input* nil)
        for second = (read-line *standard-input* nil)
        while (and first second)
        do (handler-case
               (let* ((a (objects (file-text first)))
                      (b (objects (file-text second)))
                      (difference (mismatch a b :test #'string=)))
                 (if difference
                     (format t "object ~D differs: ~S~%" difference (nth difference a))
                     (format t "~D~%" (length a))))
             (error (condition)
               (format t "~A~%" (substitute #\Space #\Newline (princ-to-string condition)))))))

(main)
