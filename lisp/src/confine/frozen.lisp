;;;; The system-call filter of the process of a frozen failure (debug/frozen.lisp), which runs no
;;;; code of the user's. This filter allows what a copy's filter allows, and also fork, signals to
;;;; the forked processes, and the installation of further filters. A forked process installs the
;;;; filter of an ordinary copy before code of the user runs.

(in-package :consort)

#+linux
(progn

(defun frozen-rulings ()
  "The rules that only the filter of a frozen failure has: conses of a system call's number and its
  instructions. From version 6 on, Landlock limits the allowed signals to the processes that this
  one forked."
  (list (cons (number-here '(kill 62 129)) (allow))
        (cons (number-here '(tkill 200 130)) (allow))
        (cons (number-here '(tgkill 234 131)) (allow))
        (cons (number-here '(prlimit64 302 261)) (only-values 0 0))
        (cons (number-here *clone*) (append (only-whole-value 0 +signal-of-end+ 0) (allow)))
        (cons (number-here *prctl*) (prctl-ruling))))

(defun confine-calls-of-frozen (landlock)
  "Installs the filter of a frozen failure. LANDLOCK is true if Landlock guards the files. Returns
  true if the filter is in force."
  (and (seccomp-p)
       (install-filter (filter-program (sb-posix:getpid) landlock (frozen-rulings)))))

) ; #+linux

#-linux
(progn
  (defun confine-calls-of-frozen (landlock) "Returns NIL: this system has no filters." (declare (ignore landlock)) nil))
