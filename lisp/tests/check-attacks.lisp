;;;; Attacks on what confines a copy, by system calls. Each is made in a copy without confinement
;;;; first, where it must succeed (else it would prove nothing here, which is told), and then in
;;;; copies confined as on the kernels of each version of Landlock.
;;;;
;;;; With CONSORT_TEST_USER, a number, the tests are those of that user: root gives up being root.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defparameter *kernels*
  '((0 "no Landlock: before Linux 5.13, or turned off") (1 "Linux 5.13 to 5.18: Ubuntu 22.04") (2 "Linux 5.19 to 6.1: Debian 12")
    (3 "Linux 6.2 to 6.6") (4 "Linux 6.7 to 6.9: Ubuntu 24.04") (5 "Linux 6.10 and 6.11") (6 "Linux 6.12 to 6.14: Debian 13")
    (7 "Linux 6.15 and later"))
  "Versions of Landlock and the kernels that have them.")
;; For another compiler, whose calls are the same but for those that compiling takes: without
;; Landlock and with all of it that this kernel has.
(when (plusp (length (sb-posix:getenv "CONSORT_FEW_FILES")))
  (setf *kernels* (remove-if-not (lambda (kernel) (member (first kernel) (list 0 (min 7 (landlock-abi))))) *kernels*)))

(define-condition refused (error) ((errno :initarg :errno :reader refused-errno)))

(defun call (number &rest arguments)
  "The system call NUMBER, of (X86-64 ARM64): its result. REFUSED when it fails."
  (let* ((arguments (append (mapcar (lambda (word) (ldb (byte 64 0) word)) arguments) (make-list (- 6 (length arguments)) :initial-element 0)))
         (result (destructuring-bind (a b c d e f) arguments
                   (system-call (funcall (second *machine*) number) a b c d e f))))
    (if (minusp result)
        (error 'refused :errno (sb-alien:get-errno))
        result)))

(defmacro with-c-string ((address string) &body body)
  `(let ((octets (sb-ext:string-to-octets ,string :null-terminate t)))
     (with-pinned-objects (octets)
       (let ((,address (sap-integer (vector-sap octets)))) ,@body))))

(defconstant +at-fdcwd+ (ldb (byte 64 0) -100))

(defun open-with (path flags) "A descriptor of PATH." (with-c-string (name path) (call '(257 56) +at-fdcwd+ name flags #o600)))

(defun read-some (descriptor &optional (octets 64))
  (with-octets (buffer () octets) (call '(0 63) descriptor buffer octets)))

(defvar *victim* nil "A file that must not change.")
(defvar *scratch* nil "The directory in which the copy may write, with a slash.")
(defvar *mother* nil "The process that made the copy.")

(defvar *socket-of-before* nil "A descriptor of a socket that the copy had before it was confined, as the report's is.")

(defun in-scratch (name) (concatenate 'string *scratch* name))
(defun scratch-file () "A descriptor of a new file in the scratch directory." (open-with (in-scratch "file") (logior sb-posix:o-rdwr sb-posix:o-creat)))
(defun a-pipe () "The end of a new pipe that is read." (with-octets (ends (0)) (call '(293 59) ends 0) (sb-sys:sap-ref-32 (sb-sys:int-sap ends) 0)))
(defun mother-file (name) (format nil "/proc/~D/~A" *mother* name))

(defparameter *attacks* '() "(NAME FUNCTION OPTION...): what succeeds when FUNCTION returns. Options: :ROOT only root can; :LANDLOCK: without it nothing refuses it.")

(defmacro define-attack (name (&rest options) &body body)
  `(setf *attacks* (append (remove ,name *attacks* :key #'first :test #'string=) (list (list ,name (lambda () ,@body) ,@options)))))

;;; Files
(define-attack "openat2 for reading, with O_TRUNC" ()
  (with-c-string (name *victim*) (with-octets (how (sb-posix:o-trunc 0 0)) (call '(437 437) +at-fdcwd+ name how 24))))
(define-attack "openat2 for writing" ()
  (with-c-string (name *victim*) (with-octets (how (sb-posix:o-wronly 0 0)) (call '(437 437) +at-fdcwd+ name how 24))))
(define-attack "openat for reading, with O_TRUNC" () (open-with *victim* sb-posix:o-trunc))
(define-attack "openat with access mode 3" () (open-with *victim* 3))
(define-attack "openat with access mode 3 and O_TRUNC" () (open-with *victim* (logior 3 sb-posix:o-trunc)))
(define-attack "openat for writing" () (open-with *victim* sb-posix:o-wronly))
(define-attack "open for writing by a descriptor's name" ()
  (open-with (format nil "/proc/self/fd/~D" (open-with *victim* sb-posix:o-rdonly)) sb-posix:o-rdwr))
(define-attack "a nameless file beside the victim" () (open-with (directory-namestring *victim*) (logior #o20200000 sb-posix:o-rdwr)))
#+x86-64 (define-attack "open with access mode 3" () (with-c-string (name *victim*) (call '(2) name 3 0)))
#+x86-64 (define-attack "open for reading, with O_TRUNC" () (with-c-string (name *victim*) (call '(2) name sb-posix:o-trunc 0)))
#+x86-64 (define-attack "creat" () (with-c-string (name *victim*) (call '(85) name #o600)))
(define-attack "truncate" () (with-c-string (name *victim*) (call '(76 45) name 0)))
(define-attack "fchmodat2" () (with-c-string (name *victim*) (call '(452 452) +at-fdcwd+ name #o777 0)))
(define-attack "setxattr" () (with-c-string (name *victim*) (with-c-string (key "user.x") (call '(188 5) name key name 1 0))))
(define-attack "FS_IOC_SETFLAGS on a descriptor for reading" (:root)
  (let ((file (open-with *victim* sb-posix:o-rdonly)))
    (with-octets (flags (0)) (call '(16 29) file #x80086601 flags) (call '(16 29) file #x40086602 flags))))
(define-attack "FS_IOC_FSSETXATTR" (:root)
  (let ((file (open-with *victim* sb-posix:o-rdonly)))
    (with-octets (flags (0 0 0 0)) (call '(16 29) file #x801c581f flags) (call '(16 29) file #x401c5820 flags))))
(define-attack "file_setattr" () (with-c-string (name *victim*) (with-octets (set (0 0 0)) (call '(469 469) +at-fdcwd+ name set 24 0))))
(define-attack "rename" () (with-c-string (name *victim*) (with-c-string (new (concatenate 'string *victim* "2"))
                                                           (call '(316 276) +at-fdcwd+ name +at-fdcwd+ new 0)
                                                           (call '(316 276) +at-fdcwd+ new +at-fdcwd+ name 0))))
(define-attack "rename out of the scratch directory" ()
  (scratch-file)
  (with-c-string (name (in-scratch "file")) (with-c-string (new (concatenate 'string *victim* "3")) (call '(316 276) +at-fdcwd+ name +at-fdcwd+ new 0) (call '(263 35) +at-fdcwd+ new 0))))
(define-attack "linkat into the scratch directory" ()
  (with-c-string (name *victim*) (with-c-string (new (in-scratch "link")) (call '(265 37) +at-fdcwd+ name +at-fdcwd+ new 0))))
(define-attack "symlinkat in the scratch directory" ()
  (with-c-string (name *victim*) (with-c-string (new (in-scratch "symlink")) (call '(266 36) name +at-fdcwd+ new))))
(define-attack "a FIFO in the scratch directory" () (with-c-string (new (in-scratch "fifo")) (call '(259 33) +at-fdcwd+ new #o10600 0)))
(define-attack "a socket in the scratch directory" () (with-c-string (new (in-scratch "socket")) (call '(259 33) +at-fdcwd+ new #o140600 0)))
(define-attack "a device in the scratch directory" (:root) (with-c-string (new (in-scratch "device")) (call '(259 33) +at-fdcwd+ new #o20600 #x101)))
(define-attack "a block device in the scratch directory" (:root) (with-c-string (new (in-scratch "disk")) (call '(259 33) +at-fdcwd+ new #o60600 #x800)))
(define-attack "open_tree" (:root) (with-c-string (name "/") (call '(428 428) +at-fdcwd+ name 1)))
(define-attack "open_tree_attr" (:root) (with-c-string (name "/") (with-octets (attributes (0 0 0 0)) (call '(467 467) +at-fdcwd+ name 1 attributes 32))))
(define-attack "name_to_handle_at" () (with-c-string (name *victim*) (with-octets (handle (128 0) 160) (with-octets (mount (0)) (call '(303 264) +at-fdcwd+ name handle mount 0)))))

;;; Locks, leases and notices on files that are only read
(define-attack "flock on a file that is read" () (call '(73 32) (open-with *victim* sb-posix:o-rdonly) 2))
(define-attack "a lock of a range by fcntl" () (with-octets (lock (0 0 0 0)) (call '(72 25) (open-with *victim* sb-posix:o-rdonly) 6 lock)))
(define-attack "a lock of an open file" () (with-octets (lock (0 0 0 0)) (call '(72 25) (open-with *victim* sb-posix:o-rdonly) 37 lock)))
(define-attack "a lease" () (call '(72 25) (open-with *victim* sb-posix:o-rdonly) 1024 0))
(define-attack "a notice of a directory's changes by a signal" () (call '(72 25) (open-with "/usr/" sb-posix:o-rdonly) 1026 #x1f))
(define-attack "inotify" () (call '(294 26) 0))

;;; Signals to others
(define-attack "FIOSETOWN" () (with-octets (owner (*mother*)) (call '(16 29) *socket-of-before* #x8901 owner)))
(define-attack "SIOCSPGRP" () (with-octets (owner (*mother*)) (call '(16 29) *socket-of-before* #x8902 owner)))
(define-attack "FIOASYNC" () (with-octets (on (1)) (call '(16 29) *socket-of-before* #x5452 on)))
(define-attack "F_SETOWN" () (call '(72 25) *socket-of-before* 8 *mother*))
(define-attack "F_SETOWN_EX" () (with-octets (owner ((logior 1 (ash *mother* 32)))) (call '(72 25) *socket-of-before* 15 owner)))
(define-attack "F_SETSIG" () (call '(72 25) *socket-of-before* 10 9))
(define-attack "O_ASYNC by F_SETFL" () (call '(72 25) *socket-of-before* 4 #o20002))
(define-attack "kill" () (call '(62 129) *mother* 0))
(define-attack "tgkill" () (call '(234 131) *mother* *mother* 0))
(define-attack "pidfd_open" () (call '(434 434) *mother* 0))
(define-attack "rt_sigqueueinfo" () (with-octets (info (0 #xffffffff) 128) (call '(129 138) *mother* 0 info)))

;;; Other processes
(define-attack "/proc/PID/mem of another" () (open-with (mother-file "mem") sb-posix:o-rdonly))
(define-attack "/proc/PID/environ of another" () (read-some (open-with (mother-file "environ") sb-posix:o-rdonly)))
(define-attack "/proc/PID/maps of another" () (read-some (open-with (mother-file "maps") sb-posix:o-rdonly)))
(define-attack "/proc/PID/fd of another" () (open-with (mother-file "fd/0") #o10000000))
(define-attack "process_vm_readv" ()
  (let ((here (make-array 1 :element-type '(unsigned-byte 64))))
    (with-pinned-objects (here)
      (with-octets (part ((sap-integer (vector-sap here)) 8)) (call '(310 270) *mother* part 1 part 1 0)))))
(define-attack "ptrace" () (call '(101 117) #x4206 *mother* 0 0))
(define-attack "limits of another" () (with-octets (old (0 0)) (call '(302 261) *mother* 7 0 old)))
(define-attack "its own limits raised" (:root) (with-octets (more (4096 1000000)) (call '(302 261) 0 7 more 0)))
(define-attack "the timers that all of the user's programs share" ()
  (with-octets (number (0)) (loop repeat 1000 do (call '(222 107) 1 0 number))))
(define-attack "PR_SET_PDEATHSIG 0" () (call '(157 167) 1 0))
(define-attack "PR_SET_DUMPABLE" () (call '(157 167) 4 0))
(define-attack "priority" () (call '(141 140) 0 0 19))
(define-attack "affinity" () (with-octets (cpus (1)) (call '(203 122) 0 8 cpus)))
(define-attack "a new process" () (let ((pid (call '(56 220) sb-posix:sigchld 0 0 0 0)))
                                    (if (zerop pid) (exit-process 0) (wait-for-copy pid))))
(define-attack "a user namespace of its own" () (call '(272 97) #x10000000))
(define-attack "setuid" () (call '(105 146) (sb-posix:getuid)))
(define-attack "setgroups" (:root) (call '(116 159) 0 0))

;;; Memory that check.memory_mb does not see
(define-attack "memfd_create" () (with-c-string (name "m") (call '(319 279) name 0)))
(define-attack "memfd_secret" () (call '(447 447) 0))
(define-attack "shared anonymous memory" () (call '(9 222) 0 4096 3 #x21 -1 0))
(define-attack "shared anonymous memory without rights" () (call '(9 222) 0 4096 0 #x21 -1 0))
(define-attack "shared validated memory of a file" () (let ((file (scratch-file))) (call '(77 46) file 4096) (call '(9 222) 0 4096 3 #x03 file 0)))
(define-attack "memory of System V" () (call '(29 194) 0 4096 #o1600))
(define-attack "a large pipe" () (call '(72 25) (a-pipe) 1031 1048576))
(define-attack "eventfd" () (call '(290 19) 0 0))
(define-attack "mlock" () (with-octets (word (0)) (call '(149 228) word 8)))

;;; The network and the kernel
(define-attack "a TCP socket" () (call '(41 198) 2 1 0))
(define-attack "a Unix socket" () (call '(41 198) 1 1 0))
(define-attack "a netlink socket" () (call '(41 198) 16 3 0))
(define-attack "a pair of sockets" () (with-octets (ends (0)) (call '(53 199) 1 1 0 ends)))
(define-attack "an option of the report's socket" () (with-octets (on (1)) (call '(54 208) *socket-of-before* 1 9 on 4)))
(define-attack "the report's socket made a listening one" () (call '(50 201) *socket-of-before* 1))
(define-attack "io_uring" () (with-octets (parameters () 120) (call '(425 425) 1 parameters)))
(define-attack "userfaultfd" (:root) (call '(323 282) 0))
(define-attack "perf_event_open" (:root) (with-octets (event ((ash 112 32)) 112) (call '(298 241) event 0 -1 -1 0)))
(define-attack "keyctl" () (call '(250 219) 0 -3 1))
(define-attack "personality" () (call '(135 92) 0))

;;; Arguments that the filter could misread, and other machines' calls
(defconstant +above+ (ash 1 32) "A bit that the kernel cuts off, and a filter may not.")
(define-attack "FIOSETOWN with a bit above the command" () (with-octets (owner (*mother*)) (call '(16 29) *socket-of-before* (+ +above+ #x8901) owner)))
(define-attack "F_SETOWN with a bit above the command" () (call '(72 25) *socket-of-before* (+ +above+ 8) *mother*))
(define-attack "O_ASYNC with a bit above the command" () (call '(72 25) *socket-of-before* (+ +above+ 4) (+ +above+ #o20002)))
(define-attack "PR_SET_PDEATHSIG with a bit above the command" () (call '(157 167) (+ +above+ 1) 0))
(define-attack "access mode 3 with a bit above the flags" () (with-c-string (name *victim*) (call '(257 56) +at-fdcwd+ name (+ +above+ 3) 0)))
(define-attack "kill with a bit above the process" () (call '(62 129) (+ +above+ *mother*) 0))
(define-attack "a system call's number with a bit above it" () (call (list (+ +above+ 319) (+ +above+ 279)) (with-c-string (name "m") name) 0))

(defun run-instructions (&rest octets)
  "What the machine's instructions OCTETS return, a signed number."
  (let ((page (call '(9 222) 0 4096 7 #x22 -1 0)))
    (loop for octet in octets for i from 0 do (setf (sb-sys:sap-ref-8 (sb-sys:int-sap page) i) octet))
    (sb-alien:alien-funcall (sb-alien:sap-alien (sb-sys:int-sap page) (function sb-alien:int)))))

(defun refuse-negative (result)
  (if (minusp result) (error 'refused :errno (- result)) result))

#+x86-64 (define-attack "a call by int 0x80, of 32-bit code" ()
  ;; push rbx; mov eax, 37 (kill); mov ebx, the mother; xor ecx, ecx; int 0x80; pop rbx; ret
  (refuse-negative (apply #'run-instructions
                          `(#x53 #xb8 37 0 0 0 #xbb ,@(loop for shift from 0 below 32 by 8 collect (ldb (byte 8 shift) *mother*))
                            #x31 #xc9 #xcd #x80 #x5b #xc3))))
#+x86-64 (define-attack "memfd_create by int 0x80" ()
  ;; push rbx; mov eax, 356; xor ebx, ebx; xor ecx, ecx; int 0x80; pop rbx; ret. EFAULT, for the
  ;; name at 0, says that the call was let in.
  (let ((result (run-instructions #x53 #xb8 #x64 1 0 0 #x31 #xdb #x31 #xc9 #xcd #x80 #x5b #xc3)))
    (if (= result -14) 0 (refuse-negative result))))

;;; More of other processes
(define-attack "kill of the process group" () (call '(62 129) 0 0))
(define-attack "kill of everybody" () (call '(62 129) -1 0))
(define-attack "kill of a process group by number" () (call '(62 129) (- (sb-posix:getpgrp)) 0))
(define-attack "tkill" () (call '(200 130) *mother* 0))
(define-attack "rt_tgsigqueueinfo" () (with-octets (info (0 #xffffffff) 128) (call '(297 240) *mother* *mother* 0 info)))
(define-attack "process_vm_writev" ()
  (let ((here (make-array 1 :element-type '(unsigned-byte 64))))
    (with-pinned-objects (here)
      (with-octets (part ((sap-integer (vector-sap here)) 8)) (call '(311 271) *mother* part 1 part 1 0)))))
(define-attack "kcmp" () (call '(312 272) *mother* (sb-posix:getpid) 0 0 0))
(define-attack "sched_setscheduler" () (with-octets (priority (0)) (call '(144 119) *mother* 0 priority)))
(define-attack "sched_setattr" () (with-octets (attributes (48 0 0 0 0 0)) (call '(314 274) 0 attributes 0)))
(define-attack "ioprio_set" () (call '(251 30) 1 *mother* (ash 2 13)))
(define-attack "get_robust_list" () (with-octets (head (0)) (with-octets (size (0)) (call '(274 100) *mother* head size))))
(define-attack "setsid" () (call '(112 157)))
(define-attack "setpgid" () (call '(109 154) 0 0))
(define-attack "membarrier of everybody" () (call '(324 283) 1 0 0))
(define-attack "landlock's own calls" () (call '(444 444) 0 0 1))
(define-attack "a filter of its own" ()
  (with-octets (allow ((answer +allow+))) (with-octets (program (1 allow)) (call '(317 277) 1 0 program))))
(define-attack "/proc/1/environ" (:root) (read-some (open-with "/proc/1/environ" sb-posix:o-rdonly)))
(define-attack "/proc/PID/cwd of another" () (with-c-string (name (mother-file "cwd")) (with-octets (buffer () 256) (call '(267 78) +at-fdcwd+ name buffer 256))))
(define-attack "/proc/self/oom_score_adj" () (open-with "/proc/self/oom_score_adj" sb-posix:o-wronly))
(define-attack "/proc/self/mem for writing" () (open-with "/proc/self/mem" sb-posix:o-rdwr))
(define-attack "/proc/self/clear_refs" () (open-with "/proc/self/clear_refs" sb-posix:o-wronly))
(define-attack "a file of /proc/sys" (:root) (open-with "/proc/sys/kernel/core_pattern" sb-posix:o-wronly))
(define-attack "TIOCSTI" () (with-octets (char (65)) (handler-case (call '(16 29) *socket-of-before* #x5412 char)
                                                       (refused (condition) (if (= 25 (refused-errno condition)) 0 (error condition))))))
(define-attack "a new terminal" () (open-with "/dev/ptmx" sb-posix:o-rdwr))
(define-attack "sendmsg" () (with-octets (message () 56) (handler-case (call '(46 211) *socket-of-before* message 0)
                                                           (refused (condition) (if (member (refused-errno condition) '(32 107 95)) 0 (error condition))))))
(define-attack "execve by a descriptor" () (with-c-string (empty "") (handler-case (call '(322 281) 999 empty 0 0 #x1000)
                                                                        (refused (condition) (if (= 9 (refused-errno condition)) 0 (error condition))))))
(define-attack "vmsplice" () (with-octets (part (0 0)) (with-octets (ends (0)) (call '(293 59) ends 0) (call '(278 75) (sb-sys:sap-ref-32 (sb-sys:int-sap ends) 4) part 1 0))))
(define-attack "splice" () (handler-case (call '(275 76) -1 0 -1 0 1 0) (refused (condition) (if (= 9 (refused-errno condition)) 0 (error condition)))))
(define-attack "modify_ldt" () (call '(154 nil) 0 0 0))
(define-attack "fanotify" (:root) (call '(300 262) 0 0))
(define-attack "mount by the new calls" (:root) (with-c-string (name "tmpfs") (call '(430 430) name 0)))
(define-attack "a name of this machine" (:root) (with-c-string (name "x") (let ((had (machine-instance))) (declare (ignore had)) (handler-case (call '(170 161) name -1) (refused (condition) (if (= 22 (refused-errno condition)) 0 (error condition)))))))

;;; More of the scratch directory and of memory
(define-attack "a whiteout, which is a device, in the scratch directory" ()
  (sb-posix:close (open-with (in-scratch "exchanged") (logior sb-posix:o-rdwr sb-posix:o-creat)))
  (with-c-string (name (in-scratch "exchanged")) (with-c-string (new (in-scratch "moved")) (call '(316 276) +at-fdcwd+ name +at-fdcwd+ new 4))))
(define-attack "shared memory of a file, made writable" ()
  (let ((file (scratch-file)))
    (call '(77 46) file 4096)
    (let ((page (call '(9 222) 0 4096 1 #x01 file 0)))
      (call '(10 226) page 4096 3))))
(define-attack "shared memory of /dev/zero" () (call '(9 222) 0 4096 1 #x01 (open-with "/dev/zero" sb-posix:o-rdonly) 0))
(define-attack "memory that is swapped out" () (call '(28 233) (call '(9 222) 0 4096 3 #x22 -1 0) 4096 21))
(define-attack "memory that is merged with others'" () (call '(28 233) (call '(9 222) 0 4096 3 #x22 -1 0) 4096 12))
(define-attack "fallocate" () (call '(285 47) (scratch-file) 0 0 4096))
#+x86-64 (define-attack "creat with the owner's rights in the scratch directory" ()
  (with-c-string (name (in-scratch "set-group-id")) (call '(85 nil) name #o2755)))
(define-attack "a file with the owner's rights in the scratch directory" ()
  (with-c-string (name (in-scratch "set-user-id")) (call '(257 56) +at-fdcwd+ name (logior sb-posix:o-creat sb-posix:o-rdwr) #o6777)))

(defun outcome-of-attack (attack)
  "Returns the outcome of ATTACK: :SUCCEEDED, or the errno that refused it."
  (handler-case (progn (funcall (second attack)) :succeeded)
    (refused (condition) (refused-errno condition))
    (sb-posix:syscall-error (condition) (sb-posix:syscall-errno condition))))

(defun call-in-new-copy (function)
  "Returns the value of FUNCTION in a copy of this image, a readable object, by a file; NIL when the
  copy did not end well. *SCRATCH* and *VICTIM* are its own."
  (call-with-scratch
   (lambda (directory)
     (let ((*scratch* (concatenate 'string directory "scratch/")) (*victim* (concatenate 'string directory "victim")) (*mother* (sb-posix:getpid))
           (result (concatenate 'string directory "scratch/result")))
       (ensure-directories-exist *scratch*)
       (with-open-file (out *victim* :direction :output) (write-string "untouched" out))
       (let ((code (wait-for-copy
                    (call-in-copy
                     (lambda ()
                       (setf *socket-of-before* (sb-bsd-sockets:socket-file-descriptor (make-instance 'sb-bsd-sockets:local-socket :type :stream)))
                       (with-open-file (out result :direction :output)
                         (with-standard-io-syntax (prin1 (funcall function) out))))
                     :patience *patience*))))
         (when (eql code 0)
           (with-open-file (in result) (with-standard-io-syntax (read in)))))))))

(defun confine-scratch ()
  "Confine this process to the scratch directory, for reading to that and the victim."
  (confine *scratch* (list *scratch* *victim* "/proc/" "/usr/" "/dev/zero")))

;;; The key of a chain

(defun confine-as-chain (pipe)
  "Confine this process as one of a chain, whose key is then in PIPE."
  (confine *scratch* (list *scratch* *victim* "/proc/" "/usr/") (lambda (landlock) (confine-calls-of-chain landlock (pipe-writer pipe)))))

(defun outcome-of (function)
  (handler-case (progn (funcall function) :succeeded)
    (refused (condition) (refused-errno condition))))

(defun clone-with (flags third)
  "Returns true if clone with FLAGS and THIRD as its third argument makes a process, which ends at
  once."
  (outcome-of (lambda () (let ((pid (call '(56 220) flags 0 third 0 0))) (if (zerop pid) (exit-process 0) (wait-for-copy pid))))))

(defun words-in-memory (masked-low masked-high mask)
  "How many words in the writable memory of this process are MASKED-LOW and MASKED-HIGH when each
  half is masked with MASK."
  (declare (type (unsigned-byte 32) masked-low masked-high mask) (optimize speed))
  (let ((found 0))
    (declare (type fixnum found))
    (with-open-file (maps "/proc/self/maps" :external-format :latin-1)
      (loop for line of-type string = (read-line maps nil "")
            until (string= line "")
            when (search " rw" line)
            do (let* ((dash (position #\- line))
                      (start (parse-integer line :end dash :radix 16))
                      (end (parse-integer line :start (1+ dash) :junk-allowed t :radix 16)))
                 (declare (type (unsigned-byte 48) start end))
                 (loop for page of-type (unsigned-byte 48) from start below end by 4096
                       ;; Memory that was never touched would become real by reading it.
                       when (page-present-p page)
                         do (loop with sap = (sb-sys:int-sap page)
                                  for offset of-type (unsigned-byte 16) from 0 below 4096 by 8
                                  when (and (= masked-low (logxor mask (sb-sys:sap-ref-32 sap offset)))
                                            (= masked-high (logxor mask (sb-sys:sap-ref-32 sap (+ 4 offset)))))
                                    do (incf found))))))
    found))

(defun page-present-p (page)
  (with-octets (state (0))
    (zerop (sb-alien:alien-funcall (sb-alien:extern-alien "mincore" (function sb-alien:int sb-alien:unsigned-long sb-alien:unsigned-long sb-alien:unsigned-long))
                                   page 4096 state))))

(defun key-facts ()
  "What a process confined as one of a chain can do with its key and without, as a list of names and
  outcomes."
  (let ((pipe (new-pipe)))
    (cond ((null (nth-value 1 (confine-as-chain pipe))) '(("confined" nil)))
          (t
           ;; The key as a mask and what it leaves, so that it is not in memory while it is looked
           ;; for.
           (let* ((half #x5555aaaa) (mask (logior half (ash half 32)))
                  (masked (with-octets (key (0))
                            (read-key (pipe-reader pipe) key)
                            (prog1 (logxor mask (sb-sys:sap-ref-64 (sb-sys:int-sap key) 0))
                              (write-key (pipe-writer pipe) key)
                              (setf (sb-sys:sap-ref-64 (sb-sys:int-sap key) 0) 0)))))
             (sb-sys:scrub-control-stack)
             (let* ((in-memory (words-in-memory (ldb (byte 32 0) masked) (ldb (byte 32 32) masked) half))
                    (key (logxor mask masked))
                    (held (make-array 1 :element-type '(unsigned-byte 64) :initial-element key)))
               (append
                (list (list "the key is not in memory" in-memory)
                      (list "the search finds a key"
                            (if (and (plusp (words-in-memory (ldb (byte 32 0) masked) (ldb (byte 32 32) masked) half)) (= key (aref held 0))) :succeeded :no))
                      (list "fork without a key" (clone-with sb-posix:sigchld 0))
                      (list "fork with another key" (clone-with sb-posix:sigchld (logxor 1 key)))
                      (list "fork with half of the key" (clone-with sb-posix:sigchld (ldb (byte 32 0) key)))
                      (list "a thread with the key" (clone-with #x3d0f00 key))
                      (list "shared memory with the key" (clone-with (logior sb-posix:sigchld #x100) key))
                      (list "a user namespace with the key" (clone-with (logior sb-posix:sigchld #x10000000) key))
                      (list "CLONE_PARENT with the key" (clone-with (logior sb-posix:sigchld #x8000) key))
                      (list "clone3" (outcome-of (lambda () (with-octets (arguments (0 0 0 0 17 0 0 0) 64) (call '(435 435) arguments 64)))))
                      (list "ending with the parent taken back" (outcome-of (lambda () (call '(157 167) 1 0))))
                      (list "a signal to itself" (outcome-of (lambda () (call '(62 129) (sb-posix:getpid) 0))))
                      (list "a group of its own" (outcome-of (lambda () (call '(109 154) 0 0))))
                      (list "a session of its own" (outcome-of (lambda () (call '(112 157)))))
                      (list "fork with the key" (clone-with sb-posix:sigchld key))
                      (list "fork by the chain" (let ((pid (fork-with-key (pipe-reader pipe) (pipe-writer pipe))))
                                                  (cond ((zerop pid) (exit-process 0)) ((plusp pid) (wait-for-copy pid) :succeeded)))))
                (progn (forbid-fork)
                       (list (list "fork with the key in a grandchild" (clone-with sb-posix:sigchld key)))))))))))

(defun possible-attacks ()
  "The attacks that succeed where nothing confines them: each in a copy of its own, as one may
  change what the next one needs."
  (loop for attack in *attacks*
        for outcome = (call-in-new-copy (lambda () (outcome-of-attack attack)))
        if (eq outcome :succeeded) collect attack
        else unless (and (member :root attack) (plusp (sb-posix:getuid)))
          do (format t "~&  not possible here without confinement either (errno ~D): ~A~%" outcome (first attack))))

(defun attack-all (attacks limit words)
  "Make ATTACKS in a copy confined as by version LIMIT of Landlock; WORDS: for which kernels that
  stands."
  (let* ((*landlock-limit* limit)
         (answers (call-in-new-copy
                   (lambda ()
                     (multiple-value-bind (landlock seccomp) (confine-scratch)
                       (list* landlock seccomp (mapcar #'outcome-of-attack attacks))))))
         (got-through (loop for attack in attacks for outcome in (cddr answers)
                            when (eq outcome :succeeded) collect (first attack))))
    (expect (and (eql (first answers) limit) (eq (second answers) t)) (format nil "Landlock ~D and the filter are in force: ~S" limit answers))
    (loop for attack in attacks for outcome in (cddr answers)
          ;; EAGAIN: a limit of setrlimit, of what is allowed a few times
          do (expect (member outcome (list :succeeded sb-posix:eperm sb-posix:eacces sb-posix:enosys sb-posix:eagain))
                     (format nil "~A is refused with an errno that says so, and not ~A" (first attack) outcome)))
    (expect (null got-through) (format nil "Landlock ~D (~A): what got through: ~{~A~^; ~}" limit words got-through))
    (format t "~&  Landlock ~D (~A): ~D attacks, ~D got through~%" limit words (length attacks) (length got-through))))

(let ((user (sb-posix:getenv "CONSORT_TEST_USER")))
  (when user
    (sb-posix:setgid (parse-integer user))
    (sb-posix:setuid (parse-integer user))
    ;; A process that changed its user is closed to others of that user, which would refuse the
    ;; attacks for us.
    (call-c "prctl" sb-alien:int (sb-alien:int 4) (sb-alien:unsigned-long 1))))

(format t "~&as ~:[a plain user~;root~]:~%" (zerop (sb-posix:getuid)))
(test "attacks"
  (let ((possible (possible-attacks)) (here (landlock-abi)))
    (expect (> (length possible) 50) "most attacks are possible without confinement")
    (loop for (limit words) in *kernels*
          do (if (<= limit here)
                 (attack-all possible limit words)
                 (format t "~&  Landlock ~D (~A): not on this kernel~%" limit words)))))

;; The calls that compiling takes are allowed, on each machine.
(test "allowed-calls"
  (loop for (limit) in *kernels*
        when (<= limit (landlock-abi))
          do (let ((*landlock-limit* limit))
               (expect (equal '(t t t 9)
                              (call-in-new-copy
                               (lambda ()
                                 (confine-scratch)
                                 (list (plusp (length (funcall (compile nil '(lambda (x) (list x))) 1)))
                                       (progn (sb-ext:gc :full t) t)
                                       (and (probe-file *victim*) t)
                                       (with-open-file (in *victim*) (length (read-line in)))))))
                       (format nil "compiling, collecting and reading with Landlock ~D" limit))
               (when (plusp limit)
                 (expect (equal '(t nil)
                                (call-in-new-copy
                                 (lambda ()
                                   (confine-scratch)
                                   (let ((file (in-scratch "new/file")))
                                     (ensure-directories-exist file)
                                     (with-open-file (out file :direction :output) (print 1 out))
                                     (with-open-file (out file :direction :output :if-exists :supersede) (print 2 out))
                                     (rename-file file (in-scratch "new/other"))
                                     (list (and (delete-file (in-scratch "new/other")) t) (probe-file file))))))
                         (format nil "writing in the scratch directory with Landlock ~D" limit))))))

(test "chain"
  (when (plusp (landlock-abi))
    (let ((facts (call-in-new-copy #'key-facts)))
      (expect (= 17 (length facts)) (format nil "a process is confined as one of a chain: ~S" facts))
      (loop for (name outcome) in facts
            do (expect (cond ((string= name "the key is not in memory") (eql outcome 0))
                             ((member name '("the search finds a key" "fork with the key" "fork by the chain") :test #'string=) (eq outcome :succeeded))
                             ((string= name "clone3") (eql outcome sb-posix:enosys))
                             (t (eql outcome sb-posix:eperm)))
                       (format nil "~A: ~A" name outcome))))
    ;; All else is as for other copies.
    (flet ((outcomes () (call-in-new-copy (lambda ()
                                            (and (nth-value 1 (confine-as-chain (new-pipe)))
                                                 (loop for attack in *attacks* collect (cons (first attack) (outcome-of-attack attack))))))))
      (let ((outcomes (outcomes)))
        (expect outcomes "attacks were made on a process of a chain")
        (loop for (name . outcome) in outcomes
              do (expect (not (eq outcome :succeeded)) (format nil "~A in a process of a chain" name)))))))

(load (merge-pathnames "attacks-with-threads.lisp" *tests-directory*))

(finish-tests (format nil "attacks as user ~D" (sb-posix:getuid)))
