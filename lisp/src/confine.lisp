;;;; What a copy may do: compile. It gives up its capabilities; Landlock keeps it from writing files but below one directory, from reading
;;;; what is none of its business, from executing, from TCP and from signals; a seccomp filter allows the system calls that compiling takes,
;;;; and no other. None of it can be taken back. What is refused fails with EPERM or EACCES.

(in-package :consort)

#+linux
(progn

(defconstant +pr-set-no-new-privileges+ 38)

(defun confine (directory readable)
  "Confine this process for good to writing below DIRECTORY, and to reading READABLE (`readable-names`) and without secrets in its
environment. The version of Landlock in force, 0 for none; and whether the filter of system
calls is."
  (if (zerop (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-no-new-privileges+) (sb-alien:unsigned-long 1)
                     (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0)))
      (let ((landlock (progn (forget-secrets) (confine-files directory readable))))
        (when (zerop landlock) (enter-user-namespace))
        (values landlock (and (seccomp-p) (drop-capabilities) (confine-calls (plusp landlock)))))
      (values 0 nil)))

) ; #+linux

#-linux
(progn
  (defun landlock-abi () "There is no Landlock here." 0)
  (defun limit-copy (seconds) "Nothing is limited here." (declare (ignore seconds)) nil)
  (defun seccomp-p () "There is no seccomp here." nil)
  (defun confine (directory readable) "There is nothing to confine with here." (declare (ignore directory readable)) (values 0 nil)))
