;;;; The filter of a process that forks further ones: the processes of a chain (check/chain/). It is
;;;; a copy's filter that allows two more calls: clone with exactly the flags of fork and a key of
;;;; 64 bits in an argument that the kernel ignores for these flags, and prctl to end with the
;;;; parent and to add a filter. The filter refuses to send any signal.
;;;;
;;;; The kernel has the key in the filter, and a pipe has it. A process has the key in its memory
;;;; only from reading the pipe until clone has returned. The user's code therefore cannot fork,
;;;; start a program or make a thread by the usual functions. Code that is written to read the pipe
;;;; gets the key. Its processes are confined in the same way, cannot leave the process group of the
;;;; chain, and end with it.

(in-package :consort)

#+linux
(progn

(defconstant +key-low+ #x4b1d0a57 "A placeholder for the low half of the key in a filter.")
(defconstant +key-high+ #x7e3c91f6 "A placeholder for the high half.")
(defparameter *clone* '(clone 56 220))
(defparameter *prctl* '(prctl 157 167))
(defconstant +key-argument+ 2 "The argument parent_tid, which only CLONE_PARENT_SETTID uses.")

(defun only-whole-value (argument low high)
  "Instructions that refuse the call with EPERM unless its 64-bit argument number ARGUMENT has the
  halves LOW and HIGH. If it has, the next instructions run."
  (list (load-word (+ 16 (* 8 argument))) (jump-equal low 1 0) (answer +eperm+)
        (load-word (+ 20 (* 8 argument))) (jump-equal high 1 0) (answer +eperm+)))

(defun prctl-ruling ()
  "The instructions for prctl. They allow *PRCTL-COMMANDS*, PR_SET_PDEATHSIG with SIGKILL, and
  PR_SET_SECCOMP, since a further filter can only refuse more. Others are refused with EPERM."
  (append (list (load-argument 0))
          (loop for command in *prctl-commands* append (list (jump-equal command 0 1) (answer +allow+)))
          (list (jump-equal +pr-set-seccomp+ 0 1) (answer +allow+)
                (jump-equal +pr-set-pdeathsig+ 1 0) (answer +eperm+)
                (load-argument 1) (jump-equal sb-posix:sigkill 0 1) (answer +allow+)
                (answer +eperm+))))

(defun chain-rulings ()
  "The rules that only processes of a chain have, each (CALL-NUMBER . INSTRUCTIONS). They refuse to
  send signals, because the filter could allow only the process id of the first process, and
  other processes inherit the filter."
  (list (cons (number-here '(kill 62 129)) (refuse-call))
        (cons (number-here '(tkill 200 130)) (refuse-call))
        (cons (number-here '(tgkill 234 131)) (refuse-call))
        (cons (number-here '(prlimit64 302 261)) (only-values 0 0))
        (cons (number-here *clone*)
              (append (only-whole-value 0 sb-posix:sigchld 0)
                      (only-whole-value +key-argument+ +key-low+ +key-high+)
                      (allow)))
        (cons (number-here *prctl*)
              (prctl-ruling))))

(defun put-key (address count key)
  "Replaces the placeholders in the COUNT filter instructions at ADDRESS, of 8 octets each, by the
  halves of the key at the address KEY."
  (loop for place from (+ address 4) by 8 repeat count
        do (let ((constant (sap-32 (int-sap place) 0)))
             (cond ((= constant +key-low+) (setf (sap-32 (int-sap place) 0) (sap-32 (int-sap key) 0)))
                   ((= constant +key-high+) (setf (sap-32 (int-sap place) 0) (sap-32 (int-sap key) 4)))))))

(defconstant +key-octets+ 8)

(defun read-key (descriptor key)
  "Reads a key from DESCRIPTOR to the address KEY. Returns true if all octets were read."
  (= +key-octets+ (call-c "read" sb-alien:long (sb-alien:int descriptor) (sb-alien:unsigned-long key) (sb-alien:unsigned-long +key-octets+))))

(defun write-key (descriptor key)
  (= +key-octets+ (call-c "write" sb-alien:long (sb-alien:int descriptor) (sb-alien:unsigned-long key) (sb-alien:unsigned-long +key-octets+))))

(defun confine-calls-of-chain (landlock pipe)
  "Installs the filter, with a new random key, and writes the key to PIPE, the descriptor of a
  pipe's write end. LANDLOCK as in FILTER-PROGRAM. Returns true if both succeeded."
  (and (seccomp-p)
       (let ((program (filter-program (sb-posix:getpid) landlock (chain-rulings))))
         (with-octets (key (0))
           (unwind-protect
                (and (= +key-octets+ (system-call (number-here '(getrandom 318 278)) key +key-octets+ 0))
                     (write-key pipe key)
                     (install-filter program (lambda (address) (put-key address (length program) key))))
             (setf (sap-word (int-sap key) 0) 0))))))

(defun fork-with-key (pipe-to-read pipe-to-write)
  "Forks with the key, which is read from the descriptor PIPE-TO-READ. The old process writes it
  back to PIPE-TO-WRITE. Returns the process id, 0 in the new process, or -1 when the key could not
  be read, so that nothing is written, or the system refused."
  (with-octets (key (0))
    (without-interrupts
      (if (read-key pipe-to-read key)
          (let ((pid (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 56 #-x86-64 220)
                             (sb-alien:unsigned-long sb-posix:sigchld) (sb-alien:long 0)
                             (sb-alien:unsigned-long (sap-word (int-sap key) 0))
                             (sb-alien:long 0) (sb-alien:long 0))))
            (unless (zerop pid) (write-key pipe-to-write key))
            (setf (sap-word (int-sap key) 0) 0)
            pid)
          -1))))

(defun forbid-fork ()
  "Installs a further filter by which this process can make no processes, even with the key. Returns
  true if the filter was installed."
  (install-filter (list (load-word 0) (jump-equal (number-here *clone*) 0 1) (answer +eperm+) (answer +allow+))))

) ; #+linux

#-linux
(progn
  (defun confine-calls-of-chain (landlock pipe) "Returns NIL: there are no filters here." (declare (ignore landlock pipe)) nil)
  (defun fork-with-key (pipe-to-read pipe-to-write) "Returns -1: there are no filters here." (declare (ignore pipe-to-read pipe-to-write)) -1)
  (defun forbid-fork () "Returns NIL: there are no filters here." nil))
