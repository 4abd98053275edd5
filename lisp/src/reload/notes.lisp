;;;; Notes on definitions that could not be put back.

(in-package :consort)

(defvar *undo-notes* '() "The definitions that could not be put back, and why: strings.")

(defun cannot-undo (control &rest arguments)
  (push (with-terse-printing () (apply #'format nil control arguments)) *undo-notes*))

(defmacro attempting ((control &rest arguments) &body body)
  "Runs BODY; when it fails, notes what could not be put back."
  `(handler-case (progn ,@body)
     (error (condition) (cannot-undo "~@? (~A)" ,control ,@arguments (condition-message condition)))))
