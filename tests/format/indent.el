;;; Indents Common Lisp files as SLIME's users have it, for the comparison in text_edits.rs.
;;; emacs --batch -Q -l SLIME/contrib/slime-cl-indent.el -l indent.el -f consort-indent FILE OUTPUT ...

(require 'cl-lib)
(require 'lisp-mode)

(defun consort-indent ()
  (while command-line-args-left
    (let ((file (pop command-line-args-left))
          (output (pop command-line-args-left)))
      (with-temp-buffer
        (let ((coding-system-for-read 'utf-8-unix))
          (insert-file-contents file))
        (lisp-mode)
        (setq-local indent-tabs-mode nil)
        (setq-local lisp-indent-function 'common-lisp-indent-function)
        (let ((inhibit-message t))
          (indent-region (point-min) (point-max)))
        (let ((coding-system-for-write 'utf-8-unix))
          (write-region nil nil output nil 'silent))))))
