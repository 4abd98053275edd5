;;;; The system calls that a copy may make: for reading files, for writing below its scratch
;;;; directory, for memory, time and its own signals. All others are refused, including those that a
;;;; later kernel adds.

(in-package :consort)

(defmacro with-octets ((address words &optional (size (* 8 (length words)))) &body body)
  "Runs BODY with the variable ADDRESS bound to the address of SIZE octets. They begin with WORDS,
  of 64 bits each, and are zero after these. The address is valid only in BODY."
  (let ((memory (gensym "MEMORY")) (sap (gensym "SAP")))
    `(let* ((,memory (make-array (max 1 (ceiling ,size 8)) :element-type '(unsigned-byte 64) :initial-element 0)))
       (with-pinned-objects (,memory)
         (let ((,sap (vector-sap ,memory)))
           ,@(loop for word in words for i from 0 collect `(setf (aref ,memory ,i) ,word))
           (let ((,address (sap-integer ,sap)))
             ,@body))))))

#+linux
(progn

(defmacro system-call (number &rest arguments)
  "Makes the system call NUMBER with ARGUMENTS, unsigned words. Returns the result; -1 when it
  failed."
  `(sb-alien:alien-funcall
    (sb-alien:extern-alien "syscall" (function sb-alien:long sb-alien:long
                                               ,@(loop repeat (length arguments) collect 'sb-alien:unsigned-long)))
    ,number ,@arguments))

(defparameter *machine*
  #+x86-64 '(#xc000003e first) #+arm64 '(#xc00000b7 second) #-(or x86-64 arm64) nil
  "(ARCHITECTURE FUNCTION): the kernel's AUDIT_ARCH constant for this machine, and the function that
  takes its call number from the two numbers in these lists. NIL for other machines.")

(defun number-here (call)
  "The number of CALL, (NAME X86-64 ARM64), on this machine; NIL if the machine has no such call."
  (funcall (second *machine*) (rest call)))

(defparameter *allowed-calls*
  '(;; reading, and writing what is open       (x86-64 arm64)
    (read 0 63) (pread64 17 67) (readv 19 65) (preadv 295 69) (preadv2 327 286)
    (write 1 64) (pwrite64 18 68) (writev 20 66) (pwritev 296 70) (pwritev2 328 287)
    (close 3 57) (close_range 436 436) (lseek 8 62) (dup 32 23) (dup2 33 nil) (dup3 292 24)
    (ftruncate 77 46) (fsync 74 82) (fdatasync 75 83) (fadvise64 221 223)
    ;; Pipes, of 64 KiB each. They are allowed so that an attempt to run a program reports that it
    ;; cannot fork.
    (pipe 22 nil) (pipe2 293 59)
    (poll 7 nil) (ppoll 271 73) (select 23 nil) (pselect6 270 72)
    ;; files by name
    (stat 4 nil) (lstat 6 nil) (fstat 5 80) (newfstatat 262 79) (statx 332 291) (statfs 137 43) (fstatfs 138 44)
    (access 21 nil) (faccessat 269 48) (faccessat2 439 439) (readlink 89 nil) (readlinkat 267 78)
    (getdents 78 nil) (getdents64 217 61) (getcwd 79 17) (chdir 80 49) (fchdir 81 50) (umask 95 166)
    ;; memory; mmap by its flags, madvise by its advice
    (brk 12 214) (mprotect 10 226) (munmap 11 215) (mremap 25 216) (mincore 27 232) (msync 26 227)
    ;; time
    (clock_gettime 228 113) (clock_getres 229 114) (clock_nanosleep 230 115) (nanosleep 35 101) (gettimeofday 96 169) (time 201 nil)
    (times 100 153) (getitimer 36 102) (setitimer 38 103) (alarm 37 nil)
    (timer_create 222 107) (timer_settime 223 110) (timer_gettime 224 108) (timer_getoverrun 225 109) (timer_delete 226 111)
    ;; its own signals, threads and end
    (rt_sigaction 13 134) (rt_sigprocmask 14 135) (rt_sigreturn 15 139) (rt_sigpending 127 136) (rt_sigtimedwait 128 137)
    (rt_sigsuspend 130 133) (sigaltstack 131 132) (pause 34 nil) (restart_syscall 219 128)
    (futex 202 98) (gettid 186 178) (set_tid_address 218 96) (sched_yield 24 124) (sched_getaffinity 204 123) (getcpu 309 168)
    (wait4 61 260) (waitid 247 95) (exit 60 93) (exit_group 231 94)
    ;; who and where it is
    (getpid 39 172) (getppid 110 173) (getpgrp 111 nil) (getpgid 121 155) (getsid 124 156) (getpriority 140 141)
    (getuid 102 174) (geteuid 107 175) (getgid 104 176) (getegid 108 177) (getgroups 115 158) (getresuid 118 148) (getresgid 120 150)
    (capget 125 90) (uname 63 160) (sysinfo 99 179) (getrusage 98 165) (getrlimit 97 163) (setrlimit 160 164) (getrandom 318 278))
  "The calls that are allowed with any arguments: (NAME X86-64 ARM64), with NIL for a machine that
  lacks the call. None of them makes links, devices, FIFOs, sockets or shared memory.")

(defparameter *calls-that-change-files*
  '((rename 82 nil) (renameat 264 38) (unlink 87 nil) (unlinkat 263 35) (mkdir 83 nil) (mkdirat 258 34) (rmdir 84 nil))
  "The calls that are allowed only if Landlock is in force, which then checks the file. In this case
  creat with certain modes and renameat2 with certain flags are also allowed.")

(defparameter *unknown-calls*
  '((clone3 435 435) (openat2 437 437))
  "The calls that are refused with ENOSYS, as if the kernel did not have them. The C library and
  most programs then use an older call, whose arguments the filter can examine.")

(defconstant +last-known-call+ 470 "The greatest call number that these lists cover. Greater
  numbers are refused with ENOSYS.")

;;; Calls with several commands

(defparameter *fcntl-commands*
  ;; F_DUPFD F_GETFD F_SETFD F_GETFL F_GETLK F_DUPFD_CLOEXEC F_GETPIPE_SZ. F_SETFL is filtered by
  ;; its flags.
  '(0 1 2 3 5 1030 1032)
  "The allowed commands of fcntl. None of them sets locks, leases, or the receiver of a descriptor's
  signals.")

(defparameter *ioctl-commands*
  '(#x5401 #x5413 #x541B #x5421 #x5450 #x5451) ; TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
  "The allowed commands of ioctl. None of them sets the receiver of signals, or changes files,
  terminals or devices.")

(defparameter *advices*
  ;; NORMAL RANDOM SEQUENTIAL WILLNEED DONTNEED FREE HUGEPAGE NOHUGEPAGE DONTDUMP DODUMP
  '(0 1 2 3 4 8 14 15 16 17)
  "The allowed kinds of advice of madvise. The others swap memory out, share it with other
  processes, or make pages fail.")

(defparameter *prctl-commands*
  ;; GET_PDEATHSIG GET_DUMPABLE SET_NAME GET_NAME GET_SECCOMP CAPBSET_READ GET_NO_NEW_PRIVS
  '(2 3 15 16 21 23 39)
  "The allowed commands of prctl. PR_SET_PDEATHSIG is not among them, because a copy must end with
  its image.")

) ; #+linux
