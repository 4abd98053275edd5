;;;; The confinement of a copy, which may only compile. It gives up its capabilities; Landlock keeps
;;;; it from writing files but below one directory, from reading files other than those that it
;;;; needs, from executing, from TCP and from signals; a seccomp filter allows the system calls that
;;;; compiling takes, and no other. None of it can be taken back. A refused call fails with EPERM or
;;;; EACCES.

(in-package :consort)

#+linux
(progn

(defconstant +pr-set-no-new-privileges+ 38)

(defun confine (directory readable &optional (confine-calls #'confine-calls) own-network)
  "Confines this process for good to writing below DIRECTORY, NIL for nowhere, and to reading
  READABLE (`readable-names`), and without secrets in its environment. CONFINE-CALLS installs the
  filter of system calls. OWN-NETWORK: whether it has namespaces of its own already. Returns the
  version of Landlock in force, 0 for none; true if all that the kernel has to confine with is in
  force; and, if not, why."
  (limit-timers)
  (if (zerop (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-no-new-privileges+) (sb-alien:unsigned-long 1)
                     (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0)))
      (multiple-value-bind (landlock failure) (progn (forget-secrets) (confine-files directory readable own-network))
        (when (and (eql landlock 0) (not own-network)) (enter-user-namespace))
        (cond ((null landlock) (values 0 nil (format nil "Landlock, which this kernel has, could not be applied: ~A" failure)))
              ((not (seccomp-p)) (values landlock nil "no seccomp"))
              ((not (and (drop-capabilities) (funcall confine-calls (plusp landlock))))
               (values landlock nil (format nil "capabilities could not be given up or seccomp not be applied: ~A" (system-message))))
              (t (values landlock t))))
      (values 0 nil (format nil "PR_SET_NO_NEW_PRIVS failed: ~A" (system-message)))))

) ; #+linux

#-linux
(progn
  (defun landlock-abi () "There is no Landlock here." 0)
  (defun limit-copy (seconds) "Nothing is limited here." (declare (ignore seconds)) nil)
  (defun seccomp-p () "There is no seccomp here." nil)
  (defun confine (directory readable &optional confine-calls) "There is nothing to confine with here." (declare (ignore directory readable confine-calls)) (values 0 nil "no seccomp")))
