;;;; Calls between files that are checked together. The compiler checks a call against the
;;;; definition that is in force when it compiles the call. For a function of a later file, that is
;;;; the old definition. Therefore calls of functions whose lambda lists have changed are checked
;;;; again when all files are loaded.

(in-package :consort)

(defun call-finding-p (finding)
  "Returns true if FINDING reports a call that does not fit the lambda list of the called function."
  (member (finding-code finding) '("wrong-argument-count" "unknown-keyword" "odd-keyword-arguments") :test #'string=))

(defun lambda-lists-now ()
  "The lambda lists of the functions whose symbols belong to packages that are not locked, by
  function name."
  (let ((lambda-lists (make-hash-table :test #'equal)))
    (dolist (package (remove-if #'sb-ext:package-locked-p (list-all-packages)) lambda-lists)
      (do-symbols (symbol package)
        (when (eq (symbol-package symbol) package)
          (dolist (name (list symbol (list 'setf symbol)))
            (when (and (fboundp name) (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))))
              (setf (gethash name lambda-lists) (ignore-errors (sb-introspect:function-lambda-list (fdefinition name)))))))))))

(defun words-of-changed-functions (before)
  "The symbol names, in lower case, of the functions that are not in BEFORE, a table of lambda
  lists, or have another lambda list there."
  (loop for name being the hash-keys of (lambda-lists-now) using (hash-value now)
        unless (multiple-value-bind (was known) (gethash name before)
                 (and known (equal was now)))
          collect (string-downcase (if (consp name) (second name) name))))

(defun mentions-p (text words)
  "Returns true if TEXT contains one of WORDS, which are in lower case. The case of TEXT is
  ignored."
  (and words
       (let ((text (string-downcase text)))
         (some (lambda (word) (search word text)) words))))
