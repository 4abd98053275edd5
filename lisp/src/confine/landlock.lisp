;;;; Landlock (linux/landlock.h) restricts a process's access to files by their directories. The
;;;; process cannot lift the restriction. The numbers of Landlock's system calls are the same on all
;;;; architectures.

(in-package :consort)

(defvar *landlock-limit* 1000 "The highest version of Landlock that is used. Tests bind it to lower
  versions, to act as older kernels.")

#+linux
(progn

(defconstant +landlock-create-ruleset+ 444)
(defconstant +landlock-add-rule+ 445)
(defconstant +landlock-restrict-self+ 446)

(defun landlock-abi ()
  "The version (ABI) of Landlock that is used; 0 if the kernel has none."
  (min *landlock-limit* (max 0 (system-call +landlock-create-ruleset+ 0 0 1))))

(defun landlock-rights (abi)
  "The bits of all rights to files that the version ABI of Landlock has."
  (cond ((>= abi 5) #xffff)             ; and ioctl on devices
        ((>= abi 3) #x7fff)             ; and truncating
        ((>= abi 2) #x3fff)             ; and moving between directories
        (t #x1fff)))

(defconstant +write-file+ #b10)
(defconstant +read-file+ #b100)
(defconstant +read-rights+ #b1100 "Reading files and directories.")
(defconstant +scratch-rights+ #b0110000110110010
  "The bits of the rights to write, make, remove, move and truncate plain files and to make and
  remove directories. Making devices, sockets, FIFOs and symbolic links, and executing files, are
  not among them.")
(defconstant +o-path+ #o10000000)
(defconstant +o-cloexec+ #o2000000)

(defun open-at (path flags)
  "Opens PATH with the open(2) flags FLAGS. Returns the descriptor; a negative number on an error."
  (let ((octets (sb-ext:string-to-octets path :null-terminate t)))
    (with-pinned-objects (octets)
      (system-call (number-here '(openat 257 56)) (ldb (byte 64 0) -100) (sap-integer (vector-sap octets)) flags 0))))

(defun allow-beneath (ruleset path rights)
  "Adds a rule to RULESET, a descriptor, that grants RIGHTS to PATH and to all below it. Returns
  true on success, and also if PATH cannot be opened, such as when it does not exist. A symbolic
  link is not followed."
  (let ((descriptor (open-at path (logior +o-path+ +o-cloexec+ sb-posix:o-nofollow))))
    (or (minusp descriptor)
        (unwind-protect
             ;; struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor.
             (with-octets (rule (rights descriptor) 16)
               (zerop (system-call +landlock-add-rule+ ruleset 1 rule 0)))
          (sb-posix:close descriptor)))))

(defun confine-files (directory readable &optional own-network)
  "Restricts this process for good. Files can be written only below DIRECTORY, or nowhere if that is
  NIL, and read only there and below READABLE, a list of names; the name of a directory ends with a
  slash. /dev/null can be read and written. No file can be executed. From version 4 of Landlock on,
  TCP is denied unless OWN-NETWORK is true. From version 6 on, signals and connections by abstract
  Unix sockets to processes outside are denied. Returns the version that is used, or 0 if the kernel
  has no Landlock. If Landlock fails, returns NIL and the system's message."
  (let ((abi (landlock-abi)))
    (if (zerop abi)
        0
        (let* ((denied (landlock-rights abi))
               (ruleset (with-octets (attributes (denied (if (and (>= abi 4) (not own-network)) #b11 0) (if (>= abi 6) #b11 0)))
                          (system-call +landlock-create-ruleset+ attributes (cond ((>= abi 6) 24) ((>= abi 4) 16) (t 8)) 0))))
          (if (and (>= ruleset 0)
                   (loop for name in readable
                         always (allow-beneath ruleset name (if (char= #\/ (char name (1- (length name)))) +read-rights+ +read-file+)))
                   (or (null directory) (allow-beneath ruleset directory (logior +read-rights+ (logand denied +scratch-rights+))))
                   (allow-beneath ruleset "/dev/null" (logior +read-file+ +write-file+))
                   (zerop (system-call +landlock-restrict-self+ ruleset 0)))
              (progn (sb-posix:close ruleset) abi)
              (values nil (system-message)))))))

) ; #+linux
