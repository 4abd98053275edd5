;;;; Notes on definitions that could not be restored.

(in-package :consort)

(defvar *undo-notes* '() "Texts about the definitions that could not be restored, with the
  reasons.")

(defun cannot-undo (control &rest arguments)
  (push (with-terse-printing () (apply #'format nil control arguments)) *undo-notes*))

(defmacro attempting ((control &rest arguments) &body body)
  "Runs BODY. If it fails, notes that something could not be restored, as CONTROL and ARGUMENTS
  describe."
  `(handler-case (progn ,@body)
     (error (condition) (cannot-undo "~@? (~A)" ,control ,@arguments (condition-message condition)))))
