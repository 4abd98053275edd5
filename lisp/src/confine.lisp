;;;; The confinement of a copy, which may only compile. The copy gives up its capabilities. Landlock
;;;; refuses writing files except below one directory, reading files that the copy does not need,
;;;; executing programs, TCP, and signals to other processes. A seccomp filter allows only the
;;;; system calls that compiling needs. No restriction can be removed again. A refused call fails
;;;; with EPERM or EACCES.

(in-package :consort)

#+linux
(progn

(defconstant +pr-set-no-new-privileges+ 38)

(defun confine (directory readable &optional (confine-calls #'confine-calls) own-network)
  "Confines this process irrevocably: to writing below DIRECTORY (NIL: nowhere) and to reading
  READABLE (READABLE-NAMES). Also removes the secrets from the environment. CONFINE-CALLS is called
  to install the filter of system calls, with true if Landlock is in force. OWN-NETWORK is true if
  this process is already in namespaces of its own. Returns three values: the version of Landlock in
  force, 0 for none; true if every means of confinement that the kernel has is in force; and
  otherwise a string that says why not."
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
  (defun landlock-abi () "Returns 0: this system has no Landlock." 0)
  (defun limit-copy (seconds) "Limits nothing on this system, and returns NIL." (declare (ignore seconds)) nil)
  (defun seccomp-p () "Returns NIL: this system has no seccomp." nil)
  (defun confine-calls (landlock) "Returns NIL: this system has no filters." (declare (ignore landlock)) nil)
  (defun confine (directory readable &optional confine-calls own-network)
    "Confines nothing on this system. Returns 0, NIL and the reason."
    (declare (ignore directory readable confine-calls own-network))
    (values 0 nil "code is confined only on Linux")))
