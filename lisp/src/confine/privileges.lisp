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

;;; The environment

(defparameter *secret-endings*
  '("TOKEN" "TOKENS" "KEY" "KEYS" "SECRET" "SECRETS" "PASSWORD" "PASSWD" "PASSPHRASE" "PASS" "CREDENTIAL" "CREDENTIALS" "COOKIE" "PAT" "AUTH" "DSN"
    "JWT" "PRIVATE" "CONNECTION_STRING")
  "A variable is a secret when its name is one of these, or ends with one behind an underscore.")

(defparameter *secret-variables*
  '("DATABASE_URL" "REDIS_URL" "MONGO_URL" "MONGODB_URI" "AMQP_URL" "PGPASSWORD" "PGPASSFILE" "MYSQL_PWD" "NETRC" "SSH_AUTH_SOCK" "SSH_AGENT_PID" "GPG_AGENT_INFO"
    "DBUS_SESSION_BUS_ADDRESS" "GIT_ASKPASS" "SSH_ASKPASS" "VSCODE_GIT_IPC_HANDLE" "KUBECONFIG" "DOCKER_AUTH_CONFIG" "AWS_ACCESS_KEY_ID"
    "AWS_SHARED_CREDENTIALS_FILE" "GOOGLE_APPLICATION_CREDENTIALS")
  "Others that are secrets, or lead to them.")

(defun secret-variable-p (name)
  "Whether the value of the environment variable NAME is to be kept from code under check."
  (let ((name (string-upcase name)))
    (or (member name *secret-variables* :test #'string=)
        (some (lambda (ending)
                (or (string= name ending)
                    (let ((start (- (length name) (length ending) 1)))
                      (and (>= start 0) (char= #\_ (char name start)) (string= ending name :start2 (1+ start))))))
              *secret-endings*))))

(defun forget-secrets ()
  "Take the secrets out of this process's environment, and wipe them from its memory, where /proc/self/environ shows them."
  (let ((names '()) (entries (sb-alien:extern-alien "environ" (* (* sb-alien:char)))))
    (unless (sb-alien:null-alien entries)
      (loop for i from 0
            for entry = (sb-alien:deref entries i)
            until (sb-alien:null-alien entry)
            do (let* ((octet (lambda (j) (ldb (byte 8 0) (sb-alien:deref entry j))))
                      (end (loop for j from 0 until (member (funcall octet j) '(0 #.(char-code #\=))) finally (return j)))
                      (name (map 'string #'code-char (loop for j below end collect (funcall octet j)))))
                 (when (and (plusp (funcall octet end)) (secret-variable-p name))
                   (push name names)
                   (loop for j from (1+ end) until (zerop (funcall octet j)) do (setf (sb-alien:deref entry j) 0))))))
    (dolist (name names) (sb-posix:unsetenv name))))

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
