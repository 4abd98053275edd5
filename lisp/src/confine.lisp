;;;; What a copy may do: compile. Landlock keeps it from writing files but below one directory, from executing, from TCP and from signals;
;;;; a seccomp filter refuses the system calls that Landlock does not know. Neither can be taken back. What is refused fails with
;;;; EPERM or EACCES. Reading files stays allowed: code reads its neighbours when it is compiled.

(in-package :consort)

(defvar *landlock* t "Whether Landlock is used where there is one: bound to NIL by the tests of what is done without.")

#+linux
(progn

(defmacro system-call (number &rest arguments)
  "The system call NUMBER with unsigned ARGUMENTS: its result, negative when it failed."
  `(sb-alien:alien-funcall
    (sb-alien:extern-alien "syscall" (function sb-alien:long sb-alien:long
                                               ,@(loop repeat (length arguments) collect 'sb-alien:unsigned-long)))
    ,number ,@arguments))

(defmacro with-octets ((address words &optional (size (* 8 (length words)))) &body body)
  "BODY with ADDRESS the address of SIZE octets that hold WORDS, each of 64 bits."
  (let ((memory (gensym "MEMORY")) (sap (gensym "SAP")))
    `(let* ((,memory (make-array (max 1 (ceiling ,size 8)) :element-type '(unsigned-byte 64) :initial-element 0)))
       (with-pinned-objects (,memory)
         (let ((,sap (vector-sap ,memory)))
           ,@(loop for word in words for i from 0 collect `(setf (aref ,memory ,i) ,word))
           (let ((,address (sap-integer ,sap)))
             ,@body))))))

;;; Landlock: linux/landlock.h. The numbers of its calls are the same on every machine.

(defconstant +landlock-create-ruleset+ 444)
(defconstant +landlock-add-rule+ 445)
(defconstant +landlock-restrict-self+ 446)

(defun landlock-abi ()
  "The version of Landlock that the kernel offers, 0 for none."
  (if *landlock* (max 0 (system-call +landlock-create-ruleset+ 0 0 1)) 0))

(defun landlock-rights (abi)
  "Every right to files that ABI knows, as bits."
  (cond ((>= abi 5) #xffff)             ; and ioctl on devices
        ((>= abi 3) #x7fff)             ; and truncating
        ((>= abi 2) #x3fff)             ; and moving between directories
        (t #x1fff)))

(defconstant +execute+ #b1)
(defconstant +write-file+ #b10)
(defconstant +read-rights+ #b1100 "Reading files and directories.")
(defconstant +o-path+ #o10000000)
(defconstant +o-cloexec+ #o2000000)

(defun allow-beneath (ruleset path rights)
  "Add to RULESET that RIGHTS are given beneath PATH."
  (let ((descriptor (sb-posix:open path (logior +o-path+ +o-cloexec+))))
    (unwind-protect
         ;; struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor.
         (with-octets (rule (rights descriptor) 16)
           (zerop (system-call +landlock-add-rule+ ruleset 1 rule 0)))
      (sb-posix:close descriptor))))

(defun confine-files (directory)
  "Give up writing but below DIRECTORY, executing, TCP, and signals to others. The version of Landlock that does it, 0 if none does."
  (let ((abi (landlock-abi)))
    (if (zerop abi)
        0
        (let* ((denied (logandc2 (landlock-rights abi) +read-rights+))
               (ruleset (with-octets (attributes (denied (if (>= abi 4) #b11 0) (if (>= abi 6) #b11 0)))
                          (system-call +landlock-create-ruleset+ attributes (cond ((>= abi 6) 24) ((>= abi 4) 16) (t 8)) 0))))
          (if (and (>= ruleset 0)
                   (allow-beneath ruleset directory (logandc2 denied +execute+))
                   (allow-beneath ruleset "/dev/null" +write-file+)
                   (zerop (system-call +landlock-restrict-self+ ruleset 0)))
              (progn (sb-posix:close ruleset) abi)
              0)))))

;;; Seccomp: a program for the kernel's packet filter over struct seccomp_data.

(defparameter *machine*
  #+x86-64 '(#xc000003e first) #+arm64 '(#xc00000b7 second) #-(or x86-64 arm64) nil
  "The kernel's name for this machine, and which number of *REFUSED-CALLS* is its own.")

(defparameter *refused-calls*
  '(;; processes and threads                (x86-64 arm64)
    (clone 56 220) (fork 57 nil) (vfork 58 nil) (execve 59 221) (execveat 322 281) (ptrace 101 117)
    (process_vm_readv 310 270) (process_vm_writev 311 271) (process_madvise 440 440) (process_mrelease 448 448) (kcmp 312 272)
    (pidfd_open 434 434) (pidfd_getfd 438 438) (pidfd_send_signal 424 424) (rt_sigqueueinfo 129 138) (rt_tgsigqueueinfo 297 240)
    (setpgid 109 154) (setsid 112 157) (setpriority 141 140) (sched_setparam 142 118) (sched_setscheduler 144 119)
    (sched_setaffinity 203 122) (sched_setattr 314 274) (ioprio_set 251 30) (migrate_pages 256 238) (move_pages 279 239)
    (personality 135 92) (unshare 272 97) (setns 308 268)
    ;; the network; the result's socket is written to as a file
    (socket 41 198) (socketpair 53 199) (connect 42 203) (accept 43 202) (accept4 288 242) (bind 49 200) (listen 50 201)
    (sendto 44 206) (sendmsg 46 211) (sendmmsg 307 269)
    ;; what Landlock does not cover of files
    (chmod 90 nil) (fchmod 91 52) (fchmodat 268 53) (fchmodat2 452 452) (chown 92 nil) (fchown 93 55) (lchown 94 nil) (fchownat 260 54)
    (utime 132 nil) (utimes 235 nil) (futimesat 261 nil) (utimensat 280 88)
    (setxattr 188 5) (lsetxattr 189 6) (fsetxattr 190 7) (setxattrat 463 463)
    (removexattr 197 14) (lremovexattr 198 15) (fremovexattr 199 16) (removexattrat 466 466) (file_setattr 469 469)
    (truncate 76 45) (name_to_handle_at 303 264) (open_by_handle_at 304 265) (fanotify_init 300 262) (quotactl 179 60) (quotactl_fd 443 443)
    ;; the system
    (mount 165 40) (umount2 166 39) (pivot_root 155 41) (chroot 161 51) (open_tree 428 428) (move_mount 429 429) (fsopen 430 430)
    (fsconfig 431 431) (fsmount 432 432) (fspick 433 433) (mount_setattr 442 442) (swapon 167 224) (swapoff 168 225) (acct 163 89)
    (init_module 175 105) (finit_module 313 273) (delete_module 176 106) (kexec_load 246 104) (kexec_file_load 320 294)
    (reboot 169 142) (sethostname 170 161) (setdomainname 171 162) (settimeofday 164 170) (clock_settime 227 112) (adjtimex 159 171)
    (clock_adjtime 305 266) (syslog 103 116) (vhangup 153 58) (iopl 172 nil) (ioperm 173 nil)
    (bpf 321 280) (perf_event_open 298 241) (userfaultfd 323 282) (io_uring_setup 425 425) (io_uring_enter 426 426)
    (io_uring_register 427 427) (add_key 248 217) (request_key 249 218) (keyctl 250 219)
    ;; who it is
    (setuid 105 146) (setgid 106 144) (setreuid 113 145) (setregid 114 143) (setgroups 116 159) (setresuid 117 147) (setresgid 119 149)
    (setfsuid 122 151) (setfsgid 123 152) (capset 126 91)
    ;; memory and queues shared with others
    (shmget 29 194) (shmat 30 196) (shmctl 31 195) (semget 64 190) (semop 65 193) (semtimedop 220 192) (semctl 66 191)
    (msgget 68 186) (msgsnd 69 189) (msgrcv 70 188) (msgctl 71 187) (mq_open 240 180) (mq_unlink 241 181))
  "System calls that a copy has no use for: name, number on x86-64, number on arm64.")

(defparameter *refused-without-landlock*
  '((creat 85 nil) (openat2 437 437) (rename 82 nil) (renameat 264 38) (renameat2 316 276) (link 86 nil) (linkat 265 37)
    (symlink 88 nil) (symlinkat 266 36) (unlink 87 nil) (unlinkat 263 35) (mkdir 83 nil) (mkdirat 258 34) (rmdir 84 nil)
    (mknod 133 nil) (mknodat 259 33))
  "Refused too where the kernel has no Landlock; opening for writing is then refused by its flags.")

(defun number-here (call)
  "The number of CALL on this machine, or NIL."
  (funcall (second *machine*) (rest call)))

;;; The filter's instructions (linux/filter.h), 64 bits each: code, jump if true, jump if false, constant.

(defun instruction (code constant &optional (true 0) (false 0))
  (logior code (ash true 16) (ash false 24) (ash constant 32)))

(defun load-word (offset) (instruction #x20 offset))           ; of struct seccomp_data
(defun jump-equal (constant true false) (instruction #x15 constant true false))
(defun jump-any-bit (constant true false) (instruction #x45 constant true false))
(defun jump-at-least (constant true false) (instruction #x35 constant true false))
(defun keep-bits (mask) (instruction #x54 mask))
(defun answer (value) (instruction #x06 value))

(defconstant +allow+ #x7fff0000)
(defconstant +eperm+ (logior #x50000 1))
(defconstant +enosys+ (logior #x50000 38))

(defun argument-offset (n) "Where the low half of argument N is." (+ 16 (* 8 n)))

(defun by-argument (call argument values met otherwise)
  "Answer CALL with MET if its ARGUMENT is one of VALUES, and with OTHERWISE if not."
  (let ((number (number-here call)))
    (when number
      (let ((body (append (list (load-word (argument-offset argument)))
                          (loop for value in values
                                append (list (jump-equal value 0 1) (answer met)))
                          (list (answer otherwise)))))
        (list* (jump-equal number 0 (length body)) body)))))

(defun only-argument (call argument &rest values)
  "Refuse CALL unless its ARGUMENT is one of VALUES."
  (by-argument call argument values +allow+ +eperm+))

(defun not-argument (call argument &rest values)
  "Refuse CALL if its ARGUMENT is one of VALUES."
  (by-argument call argument values +eperm+ +allow+))

(defun no-writing-flags (call argument)
  "Refuse CALL if the flags in its ARGUMENT would write, make or cut a file."
  (let ((number (number-here call)))
    (when number
      (list (jump-equal number 0 4)
            (load-word (argument-offset argument))
            (jump-any-bit (logior sb-posix:o-wronly sb-posix:o-rdwr sb-posix:o-creat sb-posix:o-trunc) 0 1)
            (answer +eperm+)
            (answer +allow+)))))

(defconstant +f-setown+ 8)
(defconstant +f-setown-ex+ 15)
(defconstant +tiocsti+ #x5412)
(defconstant +tioclinux+ #x541C)

(defun no-cutting-flags (call argument)
  "Refuse CALL if the flags in its ARGUMENT cut a file that is opened for reading, which Landlock before its version 3 lets pass."
  (let ((number (number-here call)))
    (when number
      (list (jump-equal number 0 5)
            (load-word (argument-offset argument))
            (keep-bits (logior sb-posix:o-trunc sb-posix:o-wronly sb-posix:o-rdwr))
            (jump-equal sb-posix:o-trunc 0 1)
            (answer +eperm+)
            (answer +allow+)))))

(defun filter-program (pid landlock)
  "The filter for the copy PID; LANDLOCK: whether Landlock guards the files."
  (let ((machine (first *machine*)))
    (append
     (list (load-word 4) (jump-equal machine 1 0) (answer +eperm+) ; another machine's calls (32-bit code)
           (load-word 0))
     #+x86-64 (list (jump-at-least #x40000000 0 1) (answer +eperm+)) ; the x32 calls
     (list (jump-equal 435 0 1) (answer +enosys+)) ; clone3: the C library then takes clone
     (loop for call in (append *refused-calls* (unless landlock *refused-without-landlock*))
           for number = (number-here call)
           when number append (list (jump-equal number 0 1) (answer +eperm+)))
     ;; Each of these answers, once its call is met: the number of the call must still be loaded before the next.
     (only-argument '(kill 62 129) 0 pid)
     (only-argument '(tkill 200 130) 0 pid)
     (only-argument '(tgkill 234 131) 0 pid)
     (only-argument '(prlimit64 302 261) 0 0 pid)
     (not-argument '(fcntl 72 25) 1 +f-setown+ +f-setown-ex+)
     (not-argument '(ioctl 16 29) 1 +tiocsti+ +tioclinux+)
     (if landlock
         (append (no-cutting-flags '(open 2 nil) 1)
                 (no-cutting-flags '(openat 257 56) 2))
         (append (no-writing-flags '(open 2 nil) 1)
                 (no-writing-flags '(openat 257 56) 2)))
     (list (answer +allow+)))))

(defconstant +pr-set-no-new-privileges+ 38)
(defconstant +pr-set-seccomp+ 22)
(defconstant +pr-get-seccomp+ 21)

(defun seccomp-p ()
  "Whether this kernel and machine have filters that we can make."
  (and *machine* (>= (call-c "prctl" sb-alien:int (sb-alien:int +pr-get-seccomp+)) 0)))

(defun confine-calls (landlock)
  "Install the filter. True when it is in force."
  (and (seccomp-p)
       (let* ((program (filter-program (sb-posix:getpid) landlock))
              (code (make-array (length program) :element-type '(unsigned-byte 64) :initial-contents program)))
         (with-pinned-objects (code)
           ;; struct sock_fprog: 16 bits of length, then the address of the instructions.
           (with-octets (descriptor ((length program) (sap-integer (vector-sap code))))
             (zerop (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-seccomp+) (sb-alien:unsigned-long 2)
                            (sb-alien:unsigned-long descriptor))))))))

;;; Limits

(defconstant +rlimit-cpu+ 0)
(defconstant +rlimit-fsize+ 1)
(defconstant +rlimit-core+ 4)
(defconstant +rlimit-nofile+ 7)

(defun set-limit (resource soft hard)
  (with-octets (limits (soft hard))
    (call-c "setrlimit" sb-alien:int (sb-alien:int resource) (sb-alien:unsigned-long limits))))

(defun limit-copy (seconds)
  "Limit what this process can use up: CPU time a little above SECONDS from now, files, descriptors, and no core dump."
  (let ((cpu (max 1 (ceiling (+ seconds 1 (/ (get-internal-run-time) internal-time-units-per-second))))))
    (set-limit +rlimit-cpu+ cpu (+ cpu 1)))
  (set-limit +rlimit-fsize+ (* 256 1024 1024) (* 256 1024 1024))
  (set-limit +rlimit-core+ 0 0)
  (set-limit +rlimit-nofile+ 512 512))

(defun confine (directory)
  "Confine this process for good to writing below DIRECTORY. The version of Landlock in force, 0 for none; and whether the filter of system
calls is."
  (if (zerop (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-no-new-privileges+) (sb-alien:unsigned-long 1)
                     (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0)))
      (let ((landlock (confine-files directory)))
        (values landlock (confine-calls (plusp landlock))))
      (values 0 nil)))

) ; #+linux

#-linux
(progn
  (defun landlock-abi () "There is no Landlock here." 0)
  (defun seccomp-p () "There is no seccomp here." nil)
  (defun limit-copy (seconds) "Nothing is limited here." (declare (ignore seconds)) nil)
  (defun confine (directory) "There is nothing to confine with here." (declare (ignore directory)) (values 0 nil)))
