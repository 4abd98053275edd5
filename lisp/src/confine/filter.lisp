;;;; The seccomp filter of a copy: a BPF program over struct seccomp_data (linux/filter.h,
;;;; linux/seccomp.h). It finds a call by binary search in the list of allowed calls.

(in-package :consort)

#+linux
(progn

;;; Instructions, 64 bits each: code, jump if true, jump if false, constant.

(defun instruction (code constant &optional (true 0) (false 0))
  (logior code (ash true 16) (ash false 24) (ash constant 32)))

(defun load-word (offset) (instruction #x20 offset))           ; of struct seccomp_data
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
  "Loads the low half of argument N: the kernel takes these arguments as 32 bits."
  (load-word (+ 16 (* 8 n))))

;;; Instructions that answer a call whose number was found.

(defun allow () (list (answer +allow+)))
(defun refuse-call () (list (answer +eperm+)))

(defun only-values (argument &rest values)
  "Allows the call if its ARGUMENT is one of VALUES."
  (append (list (load-argument argument))
          (loop for value in values append (list (jump-equal value 0 1) (answer +allow+)))
          (refuse-call)))

(defun only-fcntl-commands ()
  "Allows *FCNTL-COMMANDS*, and F_SETFL without O_ASYNC, which sends signals."
  (append (list (load-argument 1))
          (loop for command in *fcntl-commands* append (list (jump-equal command 0 1) (answer +allow+)))
          (list (jump-equal 4 1 0) (answer +eperm+)
                (load-argument 2) (jump-any-bit #o20000 0 1) (answer +eperm+) (answer +allow+))))

(defun only-private-memory ()
  "Allows mmap for private memory. check.memory_mb does not count other memory, such as that of a
  file that is mapped for reading (/dev/zero) or made writable afterwards."
  (list (load-argument 3)
        (jump-any-bit #x40000 0 1) (answer +eperm+) ; MAP_HUGETLB
        (keep-bits #x2f)                ; the type, MAP_ANONYMOUS
        (jump-equal #x02 1 0) (jump-equal #x22 0 1) (answer +allow+) ; MAP_PRIVATE
        (answer +eperm+)))

(defconstant +o-tmpfile+ #o20000000)
(defconstant +access-mode+ 3 "O_ACCMODE: reading is 0, writing 1, both 2. Linux also has 3, which
  Landlock treats as neither.")

(defun only-plain-modes (argument)
  "Allows the call if its ARGUMENT, the mode of a new file, has no S_ISUID and S_ISGID."
  (list (load-argument argument) (jump-any-bit #o6000 0 1) (answer +eperm+) (answer +allow+)))

(defun only-known-access (argument)
  "Refuses opening with the access mode 3, and truncating files that are opened for reading:
  Landlock before its version 3 allows both. Refuses new files that run with their owner's rights.
  The mode is the next argument."
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
  "Refuses opening that would write, create or truncate a file."
  (list (load-argument argument)
        (jump-any-bit (logior +access-mode+ sb-posix:o-creat sb-posix:o-trunc +o-tmpfile+) 0 1)
        (answer +eperm+)
        (answer +allow+)))

(defun rulings (pid landlock more)
  "An alist from numbers of calls to the instructions that decide on them, for the copy PID, sorted
  by number. LANDLOCK is true if Landlock guards the files. MORE are rules for other calls, or rules
  that replace these."
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
  "RULINGS as a list of (START . INSTRUCTIONS), each for the numbers from START up to the next,
  without gaps."
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
  "Instructions that find the loaded number of a call in SEGMENTS and run the instructions there."
  (if (null (rest segments))
      (cdr (first segments))
      (let* ((half (floor (length segments) 2))
             (lower (search-tree (subseq segments 0 half)))
             (upper (search-tree (nthcdr half segments))))
        ;; A conditional jump has a distance of 8 bits, so it only skips the following unconditional
        ;; jump or not.
        (append (list (jump-at-least (car (nth half segments)) 0 1)
                      (jump (length lower)))
                lower
                upper))))

(defun filter-program (pid landlock &optional more)
  "The filter for the copy PID. LANDLOCK is true if Landlock guards the files. MORE are further
  rules."
  (append
   ;; System calls of another architecture (32-bit code) are refused.
   (list (load-word 4) (jump-equal (first *machine*) 1 0) (answer +eperm+)
         (load-word 0))
   #+x86-64 (list (jump-at-least #x40000000 0 1) (answer +eperm+)) ; the x32 calls
   (search-tree (segments (rulings pid landlock more)))))

(defconstant +pr-set-seccomp+ 22)
(defconstant +pr-get-seccomp+ 21)

(defun seccomp-p ()
  "Returns true if this kernel and this machine support Consort's filters."
  (and *machine* (>= (call-c "prctl" sb-alien:int (sb-alien:int +pr-get-seccomp+)) 0)))

(defun install-filter (program &optional (complete #'identity))
  "Has the system apply PROGRAM to every call from now on, also to calls of processes that this one
  makes. COMPLETE is called first, with the address of the instructions, which are erased
  afterwards. Returns true if the filter is in force."
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
  "Installs the filter. Returns true if it is in force."
  (and (seccomp-p)
       (install-filter (filter-program (sb-posix:getpid) landlock))))

) ; #+linux
