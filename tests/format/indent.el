;;; Indents Common Lisp files as SLIME's users have it, for the comparison in text_edits.rs.
;;; emacs --batch -Q -l SLIME/contrib/slime-cl-indent.el -l indent.el -f consort-indent FILE OUTPUT ...
;;; With the environment variable CONNECTED, Emacs knows of the macros of each file what SLIME tells
;;; it when it is connected and they are loaded: how many arguments stand before &body.

(require 'cl-lib)
(require 'lisp-mode)

(defun consort-elements (from)
  "The elements of the list at FROM, in lower case."
  (let ((end (scan-sexps from 1)) (at (1+ from)) found next)
    (while (and (setq next (ignore-errors (scan-sexps at 1))) (< next end))
      (push (downcase (string-trim (buffer-substring-no-properties at next))) found)
      (setq at next))
    (nreverse found)))

(defun consort-before-body (parameters)
  "The number of parameters before &body, as swank::macro-indentation has it."
  (let (counted skip)
    (dolist (parameter parameters)
      (cond (skip (setq skip nil))
            ((member parameter '("&whole" "&environment")) (setq skip t))
            ((not (equal parameter "&optional")) (push parameter counted))))
    (cl-position "&body" (nreverse counted) :test #'equal)))

(defun consort-macros ()
  "Alexandria's and UIOP's binding conditionals and the macros of the buffer, with their bodies."
  (let ((found '((if-let . 1) (when-let . 1) (when-let* . 1))))
    (goto-char (point-min))
    (while (re-search-forward "^[ \t]*(\\(?:cl:\\)?defmacro[ \t\n]+\\([^ \t\n()]+\\)[ \t\n]*(" nil t)
      (let* ((name (downcase (match-string 1)))
             (body (consort-before-body (ignore-errors (consort-elements (1- (point)))))))
        (when body (push (cons (intern name) body) found))))
    found))

(defun consort-indent ()
  (while command-line-args-left
    (let ((file (pop command-line-args-left))
          (output (pop command-line-args-left)))
      (with-temp-buffer
        ;; The line breaks of the file, as when a person opens it: CRLF is no part of the text.
        (let ((coding-system-for-read 'utf-8))
          (insert-file-contents file))
        (lisp-mode)
        (setq-local indent-tabs-mode nil)
        (setq-local lisp-indent-function 'common-lisp-indent-function)
        (clrhash common-lisp-system-indentation)
        (when (getenv "CONNECTED")
          (dolist (macro (consort-macros))
            (puthash (car macro) (list (list (cdr macro))) common-lisp-system-indentation)))
        (let ((inhibit-message t))
          (indent-region (point-min) (point-max)))
        (let ((coding-system-for-write 'utf-8-unix))
          (write-region nil nil output nil 'silent))))))
