;;;; Landlock (linux/landlock.h) restricts access to files by their directories, irrevocably. The
;;;; numbers of its calls are the same on every machine.

(in-package :consort)

(defvar *landlock-limit* 1000 "The highest version of Landlock that is used. Tests bind it to lower
  versions, to act as older kernels.")

#+linux
(progn

(defconstant +landlock-create-ruleset+ 444)
(defconstant +landlock-add-rule+ 445)
(defconstant +landlock-restrict-self+ 446)

(defun landlock-abi ()
  "The version of Landlock that is used, 0 for none."
  (min *landlock-limit* (max 0 (system-call +landlock-create-ruleset+ 0 0 1))))

(defun landlock-rights (abi)
  "Every right to files that ABI knows, as bits."
  (cond ((>= abi 5) #xffff)             ; and ioctl on devices
        ((>= abi 3) #x7fff)             ; and truncating
        ((>= abi 2) #x3fff)             ; and moving between directories
        (t #x1fff)))

(defconstant +write-file+ #b10)
(defconstant +read-file+ #b100)
(defconstant +read-rights+ #b1100 "Reading files and directories.")
(defconstant +scratch-rights+ #b0110000110110010
  "Writing, making, removing, moving and cutting plain files and directories; no devices, sockets,
  FIFOs and links, and no program to run.")
(defconstant +o-path+ #o10000000)
(defconstant +o-cloexec+ #o2000000)

(defun open-at (path flags)
  "A descriptor of PATH opened with FLAGS; negative if opening failed."
  (let ((octets (sb-ext:string-to-octets path :null-terminate t)))
    (with-pinned-objects (octets)
      (system-call (number-here '(openat 257 56)) (ldb (byte 64 0) -100) (sap-integer (vector-sap octets)) flags 0))))

(defun allow-beneath (ruleset path rights)
  "Adds a rule to RULESET that grants RIGHTS beneath PATH, if PATH exists. A link grants nothing."
  (let ((descriptor (open-at path (logior +o-path+ +o-cloexec+ sb-posix:o-nofollow))))
    (or (minusp descriptor)
        (unwind-protect
             ;; struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor.
             (with-octets (rule (rights descriptor) 16)
               (zerop (system-call +landlock-add-rule+ ruleset 1 rule 0)))
          (sb-posix:close descriptor)))))

(defun confine-files (directory readable &optional own-network)
  "Gives up writing except below DIRECTORY (NIL: everywhere), reading except beneath READABLE
  (names; a directory's ends with a slash), executing, TCP unless the network is the copy's own, and
  signals to others. Returns the version of Landlock that enforces this, or 0 if there is none. If
  Landlock fails, returns NIL and the system's message."
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
