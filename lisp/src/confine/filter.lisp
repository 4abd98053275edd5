;;;; The seccomp filter of a copy: a BPF program that examines struct seccomp_data (linux/filter.h,
;;;; linux/seccomp.h). The program finds the rule for a system call by binary search in the numbers
;;;; of the calls.

(in-package :consort)

#+linux
(progn

;;; Instructions, as integers of 64 bits: 16 bits of operation code, 8 bits each for the number of
;;; instructions to skip if the condition is true and if it is false, and a constant of 32 bits.

(defun instruction (code constant &optional (true 0) (false 0))
  (logior code (ash true 16) (ash false 24) (ash constant 32)))

(defun load-word (offset) (instruction #x20 offset))           ; at OFFSET octets in seccomp_data
(defun jump (distance) (instruction #x05 distance))
(defun jump-equal (constant true false) (instruction #x15 constant true false))
(defun jump-any-bit (constant true false) (instruction #x45 constant true false))
(defun jump-at-least (constant true false) (instruction #x35 constant true false))
(defun keep-bits (mask) (instruction #x54 mask))
(defun answer (value) (instruction #x06 value))

(defconstant +allow+ #x7fff0000)
(defconstant +eperm+ (logior #x50000 1))
(defconstant +enosys+ (logior #x50000 38))

(defun load-argument (n)
  "The instruction that loads the low half of argument N of the system call. The kernel uses only
  these 32 bits of the arguments that the filter examines."
  (load-word (+ 16 (* 8 n))))

;;; Lists of instructions that decide on a system call after the rule for its number was found.

(defun allow () (list (answer +allow+)))
(defun refuse-call () (list (answer +eperm+)))

(defun only-values (argument &rest values)
  "Instructions that allow the call if the argument number ARGUMENT is one of VALUES."
  (append (list (load-argument argument))
          (loop for value in values append (list (jump-equal value 0 1) (answer +allow+)))
          (refuse-call)))

(defun only-fcntl-commands ()
  "Instructions that allow fcntl with *FCNTL-COMMANDS*, and with F_SETFL unless O_ASYNC is set.
  O_ASYNC makes the kernel send signals."
  (append (list (load-argument 1))
          (loop for command in *fcntl-commands* append (list (jump-equal command 0 1) (answer +allow+)))
          (list (jump-equal 4 1 0) (answer +eperm+)
                (load-argument 2) (jump-any-bit #o20000 0 1) (answer +eperm+) (answer +allow+))))

(defun only-private-memory ()
  "Instructions that allow mmap only for private memory without MAP_HUGETLB. The memory limit
  check.memory_mb does not count other memory, such as a shared mapping of /dev/zero or one that is
  made writable afterwards."
  (list (load-argument 3)
        (jump-any-bit #x40000 0 1) (answer +eperm+) ; MAP_HUGETLB
        (keep-bits #x2f)                ; the type, MAP_ANONYMOUS
        (jump-equal #x02 1 0) (jump-equal #x22 0 1) (answer +allow+) ; MAP_PRIVATE
        (answer +eperm+)))

(defconstant +o-tmpfile+ #o20000000)
(defconstant +access-mode+ 3 "O_ACCMODE, the mask of the access mode: 0 for reading, 1 for writing,
  2 for both. Linux also accepts 3, which Landlock treats as neither reading nor writing.")

(defun only-plain-modes (argument)
  "Instructions that allow the call if the argument number ARGUMENT, the mode of a new file, has
  neither S_ISUID nor S_ISGID."
  (list (load-argument argument) (jump-any-bit #o6000 0 1) (answer +eperm+) (answer +allow+)))

(defun only-known-access (argument)
  "Instructions that allow open or openat, whose flags are the argument number ARGUMENT, with
  exceptions. The access mode 3 is refused, because Landlock does not restrict it. O_TRUNC with
  opening for reading is refused, because Landlock restricts truncation only from ABI version 3 on.
  New files with S_ISUID or S_ISGID in their mode, the argument after the flags, are refused."
  (append
   (list (load-argument argument)
         (keep-bits (logior sb-posix:o-trunc +access-mode+))
         (jump-equal +access-mode+ 2 0)
         (jump-equal (logior sb-posix:o-trunc +access-mode+) 1 0)
         (jump-equal sb-posix:o-trunc 0 1)
         (answer +eperm+)
         (load-argument argument)
         (jump-any-bit (logior sb-posix:o-creat +o-tmpfile+) 1 0)
         (answer +allow+))
   (only-plain-modes (1+ argument))))

(defun only-reading (argument)
  "Instructions that refuse open or openat if the argument number ARGUMENT, the flags, asks for
  writing, creating or truncating a file."
  (list (load-argument argument)
        (jump-any-bit (logior +access-mode+ sb-posix:o-creat sb-posix:o-trunc +o-tmpfile+) 0 1)
        (answer +eperm+)
        (answer +allow+)))

(defun rulings (pid landlock more)
  "An alist from the numbers of system calls to the instructions that decide on them, sorted by
  number. PID is the process id of the copy. LANDLOCK is true if Landlock restricts access to files.
  MORE is an alist of the same kind, whose rules are added or replace those here."
  (flet ((open-flags (argument) (if landlock (only-known-access argument) (only-reading argument))))
    (let ((rulings (append
                    (loop for call in (append *allowed-calls* (when landlock *calls-that-change-files*))
                          collect (cons (number-here call) (allow)))
                    (loop for call in *unknown-calls* collect (cons (number-here call) (list (answer +enosys+))))
                    (loop for (call . ruling) in `(((open 2 nil) ,@(open-flags 1))
                                                   ((openat 257 56) ,@(open-flags 2))
                                                   ((mmap 9 222) ,@(only-private-memory))
                                                   ((madvise 28 233) ,@(apply #'only-values 2 *advices*))
                                                   ((fcntl 72 25) ,@(only-fcntl-commands))
                                                   ((ioctl 16 29) ,@(apply #'only-values 1 *ioctl-commands*))
                                                   ((prctl 157 167) ,@(apply #'only-values 0 *prctl-commands*))
                                                   ((kill 62 129) ,@(only-values 0 pid))
                                                   ((tkill 200 130) ,@(only-values 0 pid))
                                                   ((tgkill 234 131) ,@(only-values 0 pid))
                                                   ((prlimit64 302 261) ,@(only-values 0 0 pid))
                                                   ,@(when landlock
                                                       `(((creat 85 nil) ,@(only-plain-modes 1))
                                                         ((renameat2 316 276) ,@(only-values 4 0 1 2)))))
                          collect (cons (number-here call) ruling)))))
      (sort (remove nil (append more (remove-if (lambda (ruling) (assoc (car ruling) more)) rulings)) :key #'car) #'< :key #'car))))

(defun segments (rulings)
  "RULINGS as a list of (START . INSTRUCTIONS), sorted by START, which covers all numbers from 0.
  The INSTRUCTIONS decide on the calls from START up to the START of the next entry. Calls without a
  rule are refused with EPERM, those after +LAST-KNOWN-CALL+ with ENOSYS."
  (let ((segments '()) (next 0))
    (flet ((add (start instructions)
             (unless (equal instructions (cdr (first segments))) (push (cons start instructions) segments))))
      (loop for (number . instructions) in rulings
            do (when (> number next) (add next (refuse-call)))
               (add number instructions)
               (setf next (1+ number)))
      (add next (refuse-call))
      (add (1+ +last-known-call+) (list (answer +enosys+))))
    (nreverse segments)))

(defun search-tree (segments)
  "Instructions that find the entry of SEGMENTS for the loaded number of a call by binary search,
  and run that entry's instructions."
  (if (null (rest segments))
      (cdr (first segments))
      (let* ((half (floor (length segments) 2))
             (lower (search-tree (subseq segments 0 half)))
             (upper (search-tree (nthcdr half segments))))
        ;; The distance of a conditional jump has only 8 bits. The conditional jump here therefore
        ;; only selects whether the unconditional jump after it, over the lower half, is run.
        (append (list (jump-at-least (car (nth half segments)) 0 1)
                      (jump (length lower)))
                lower
                upper))))

(defun filter-program (pid landlock &optional more)
  "The list of the instructions of the filter for the copy with the process id PID. LANDLOCK and
  MORE are as in RULINGS."
  (append
   ;; System calls of another architecture (32-bit code) are refused.
   (list (load-word 4) (jump-equal (first *machine*) 1 0) (answer +eperm+)
         (load-word 0))
   #+x86-64 (list (jump-at-least #x40000000 0 1) (answer +eperm+)) ; system calls of the x32 ABI
   (search-tree (segments (rulings pid landlock more)))))

(defconstant +pr-set-seccomp+ 22)
(defconstant +pr-get-seccomp+ 21)

(defun seccomp-p ()
  "Returns true if the kernel supports seccomp and Consort has the numbers of the system calls of
  this machine's architecture."
  (and *machine* (>= (call-c "prctl" sb-alien:int (sb-alien:int +pr-get-seccomp+)) 0)))

(defun install-filter (program &optional (complete #'identity))
  "Installs the filter PROGRAM, a list of instructions, for the calling thread and the threads and
  processes that it creates later. COMPLETE is called first with the address of the instructions,
  and may change them. That copy of the instructions is overwritten with zeros afterwards. Returns
  true if the filter is in force."
  (let ((code (make-array (length program) :element-type '(unsigned-byte 64) :initial-contents program)))
    (with-pinned-objects (code)
      (let ((address (sap-integer (vector-sap code))))
        (funcall complete address)
        ;; struct sock_fprog: 16 bits of length, then the address of the instructions.
        (unwind-protect
             (with-octets (descriptor ((length program) address))
               (zerop (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-seccomp+) (sb-alien:unsigned-long 2)
                              (sb-alien:unsigned-long descriptor))))
          (fill code 0))))))

(defun confine-calls (landlock)
  "Installs the filter of a copy in this process. LANDLOCK is as in RULINGS. Returns true if the
  filter is in force."
  (and (seccomp-p)
       (install-filter (filter-program (sb-posix:getpid) landlock))))

) ; #+linux
