;;;; Work in a copy of the image (eval-in-copy.lisp): an evaluation that also reports which parts of
;;;; the image it would have changed, and which of its operations the confinement refused. An
;;;; evaluation that would have changed nothing needs no approval, because the copy's answer
;;;; suffices.

(in-package :consort)

(defparameter *parts-of-process* '("files" "threads")
  "Parts of the fingerprint that mean nothing in a copy, which has neither.")
(defconstant +max-refusals+ 3 "The maximum number of refusals of the confinement in an answer.")
(defconstant +refusal-characters+ 300 "The maximum number of characters of a refusal's message.")

(define-part "session" (omit)
  (summing (add)
    (when *user-settings*
      (add (readtable-hash (setting *user-settings* '*readtable*)))
      (loop for symbol in *settings*
            for value in (settings-values *user-settings*)
            unless (moving-p symbol)
              do (add (mix (symbol-hash symbol) (content-hash value 1)))))))

(define-part "process" (omit)
  (summing (add)
    (dolist (entry (sb-ext:posix-environ)) (add (hash-string entry)))
    (add (hash-string (or (ignore-errors (sb-posix:getcwd)) "")))
    (dolist (name (trace)) (add (hash-string (prin1-to-string name))))))

(defun state-digests ()
  "An alist of the parts of the image and their digests, which also depend on the contents of hash
  tables and instances. Must be called in a copy."
  (let ((*hash-contents* t))
    (loop for (name . function) in *parts*
          unless (member name *parts-of-process* :test #'string=)
            collect (cons name (let ((*objects-left* +objects-looked-into+)) (funcall function '()))))))

(defun changed-parts (before after)
  "The names of the parts whose digests differ, as JSON."
  (coerce (sort (loop for (name . digest) in before
                      unless (eql digest (cdr (assoc name after :test #'string=)))
                        collect name)
                #'string<)
          'vector))

(defun intern-names-in (code package)
  "Reads CODE, so that the names in it are interned before the first digest. The evaluation will
  report an error in it."
  (handler-case
      (call-with-user-settings package
                               (lambda ()
                                 (with-input-from-string (stream code)
                                   (loop with *read-eval* = nil
                                         until (eq (read stream nil stream) stream)))))
    (error () nil)))

(defvar *refusals* '() "The messages of refused operations, newest first, while an evaluation is
  tried.")

(defun note-refusal (condition)
  "Called with each condition that the code signals, even one that it handles (see
  *BREAK-ON-SIGNALS*). Returns NIL, so that there is no break."
  (when (and (typep condition 'error) (< (length *refusals*) +max-refusals+) (confinement-refusal-p condition))
    (with-own-settings ()
      (let ((message (condition-message condition)))
        (pushnew (subseq message 0 (min (length message) +refusal-characters+)) *refusals* :test #'string=))))
  nil)

(defun evaluate-noting-refusals (evaluation params package timeout)
  "Like EVALUATE-AS-ASKED, but calls NOTE-REFUSAL for each condition."
  (let ((before (setting *user-settings* '*break-on-signals*)))
    (unless before
      (setf (setting *user-settings* '*break-on-signals*) '(satisfies note-refusal)))
    ;; The comparison has a time limit of its own.
    (prog1 (call-with-evaluation-timeout evaluation timeout (lambda () (evaluate-as-asked evaluation params package timeout)))
      (when (equal (setting *user-settings* '*break-on-signals*) '(satisfies note-refusal))
        (setf (setting *user-settings* '*break-on-signals*) before)))))

(defun try-evaluation (evaluation params package timeout &aux (code-timeout (field params "code_timeout" timeout)))
  "The JSON of TriedEvaluation for the code of PARAMS."
  (intern-names-in (field params "code") package)
  (let* ((*refusals* '())
         (before (state-digests))
         (outcome (evaluate-noting-refusals evaluation params package code-timeout))
         (changed (changed-parts before (state-digests))))
    (append outcome (list "compared" :true "changed" changed "refusals" (coerce (reverse *refusals*) 'vector)))))
