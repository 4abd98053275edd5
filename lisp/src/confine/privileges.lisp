;;;; The capabilities, the view of other processes, and the share of the machine that a copy gives up.

(in-package :consort)

#+linux
(progn

(defun drop-capabilities ()
  "Give up every capability, which root has, for good: no program is started that could give one back. Whether that was done."
  (let ((number (number-here '(capset 126 91))))
    ;; struct __user_cap_header_struct (version 3, this process), and twice 3 words of 32 bits.
    (with-octets (header (#x20080522))
      (with-octets (none (0 0 0))
        (zerop (system-call number header none))))))

(defconstant +clone-newuser+ #x10000000)

(defun write-file-at-once (path text)
  "Write TEXT to PATH by one call, as files of /proc want it."
  (let ((descriptor (sb-posix:open path sb-posix:o-wronly)) (octets (sb-ext:string-to-octets text :external-format :latin-1)))
    (unwind-protect (with-pinned-objects (octets)
                      (sb-posix:write descriptor (vector-sap octets) (length octets)))
      (sb-posix:close descriptor))))

(defun enter-user-namespace ()
  "Move into a user namespace of its own, from which the memory and the environment of processes outside cannot be opened (/proc/PID/mem,
environ), which only Landlock refuses otherwise. Whether the system lets it."
  (let ((user (sb-posix:geteuid)) (group (sb-posix:getegid)))
    (when (zerop (system-call (number-here '(unshare 272 97)) +clone-newuser+))
      ;; Its user and group keep their numbers. Without that it works too, and looks like nobody's.
      (handler-case
          (progn (write-file-at-once "/proc/self/setgroups" "deny")
                 (write-file-at-once "/proc/self/uid_map" (format nil "~D ~:*~D 1" user))
                 (write-file-at-once "/proc/self/gid_map" (format nil "~D ~:*~D 1" group)))
        (sb-posix:syscall-error () nil))
      t)))

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

) ; #+linux
