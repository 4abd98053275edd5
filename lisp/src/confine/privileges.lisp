;;;; The privileges that a copy gives up: capabilities, access to other processes, secrets in the
;;;; environment, and unlimited resources.

(in-package :consort)

#+linux
(progn

(defun drop-capabilities ()
  "Gives up all capabilities, which root has. This is irrevocable, because no program is started
  that could restore one. Returns true if it succeeded."
  (let ((number (number-here '(capset 126 91))))
    ;; struct __user_cap_header_struct (version 3, this process), and twice 3 words of 32 bits.
    (with-octets (header (#x20080522))
      (with-octets (none (0 0 0))
        (zerop (system-call number header none))))))

(defconstant +clone-newuser+ #x10000000)

(defun write-file-at-once (path text)
  "Writes TEXT to PATH by one call, as files of /proc require."
  (let ((descriptor (sb-posix:open path sb-posix:o-wronly)) (octets (sb-ext:string-to-octets text :external-format :latin-1)))
    (unwind-protect (with-pinned-objects (octets)
                      (sb-posix:write descriptor (vector-sap octets) (length octets)))
      (sb-posix:close descriptor))))

(defun enter-user-namespace (&optional (others 0))
  "Moves this process into a new user namespace, and into new namespaces for the flags OTHERS. From
  there the memory and the environment of processes outside (/proc/PID/mem, environ) cannot be
  opened. Otherwise only Landlock prevents that. Returns true if the system allows it."
  (let ((user (sb-posix:geteuid)) (group (sb-posix:getegid)))
    (when (zerop (system-call (number-here '(unshare 272 97)) (logior +clone-newuser+ others)))
      ;; The numbers of user and group stay the same. The process works without the mapping too, but
      ;; appears to belong to nobody.
      (handler-case
          (progn (write-file-at-once "/proc/self/setgroups" "deny")
                 (write-file-at-once "/proc/self/uid_map" (format nil "~D ~:*~D 1" user))
                 (write-file-at-once "/proc/self/gid_map" (format nil "~D ~:*~D 1" group)))
        (sb-posix:syscall-error () nil))
      t)))

;;; The environment

(defparameter *secret-words*
  '("PAT" "AUTH" "COOKIE" "COOKIES" "CRED" "CREDS" "DSN" "JWT" "OTP" "PIN" "PRIVATE" "SESSION" "WEBHOOK" "HEADERS" "MNEMONIC" "BEARER" "SALT" "PHRASE" "TOTP" "SAS" "SIGNATURE"
    "OAUTH")
  "A variable is a secret when one of these is among the words of its name.")

(defparameter *secret-stems*
  '("TOKEN" "SECRET" "PASSW" "PASSPHRASE" "PASSCODE" "CREDENTIAL" "APIKEY" "ACCESSKEY" "PRIVATEKEY" "CONNECTIONSTRING" "AUTHORIZATION" "SESSIONID" "SESSID")
  "A variable is a secret when a word of its name has one of these in it.")

(defparameter *secret-endings* '("KEY" "KEYS" "PASS" "PW" "PWD")
  "A variable is a secret when a word of its name ends with one of these.")

(defparameter *plain-endings*
  '("MONKEY" "DONKEY" "TURKEY" "HOCKEY" "WHISKEY" "JOCKEY" "HOTKEY" "COMPASS" "BYPASS")
  "Words that are no secrets, although they or their plurals end like one.")

(defparameter *secret-variables*
  '("MASTER_SEED" "WALLET_SEED" "DATABASE_URL" "REDIS_URL" "MONGO_URL" "MONGODB_URI" "AMQP_URL" "PGPASSFILE" "NETRC" "SSH_AUTH_SOCK" "SSH_AGENT_PID" "GPG_AGENT_INFO"
    "DBUS_SESSION_BUS_ADDRESS" "GIT_ASKPASS" "SSH_ASKPASS" "SUDO_ASKPASS" "VSCODE_GIT_IPC_HANDLE" "KUBECONFIG" "XAUTHORITY" "KRB5CCNAME")
  "Names of further variables that are secrets, or give access to secrets.")

(defparameter *plain-variables* '("PWD" "OLDPWD") "The variables that only look like secrets.")

(defparameter *secret-parts*
  '("PRIVATE KEY-----" "BEARER " "BASIC " "AUTHORIZATION:" "PWD=" "&SIG=" "?SIG=" "HOOKS.SLACK.COM/" "/API/WEBHOOKS/")
  "A value is a secret when it contains one of these in any case: keys, headers, connection
  strings.")

(defparameter *token-beginnings*
  '("ghp_" "gho_" "ghs_" "ghu_" "ghr_" "github_pat_" "glpat-" "xoxb-" "xoxp-" "xapp-" "sk-" "sk_live_" "rk_live_" "AKIA" "ASIA" "AIza" "ya29." "eyJ" "npm_"
    "pypi-" "hf_" "hvs." "SG." "dop_v1_" "shpat_" "shpss_" "shpca_" "shppa_" "lin_api_" "lin_oauth_" "AGE-SECRET-KEY-" "glrt-" "gldt-" "glcbt-" "glsoat-" "glimt-" "glagent-"
    "xoxa-" "xoxr-" "xoxe-" "xoxe." "whsec_" "dckr_pat_" "dp.pt." "dp.st." "pul-" "PMAK-" "sntrys_" "sntryu_" "nfp_" "rubygems_" "GOCSPX-" "ATATT3" "ATCTT3" "xkeysib-"
    "tskey-" "sq0csp-" "sq0atp-" "ntn_" "secret_" "pscale_tkn_" "pscale_pw_" "r8_" "gsk_" "xai-" "pplx-" "nvapi-" "hvb." "hvr." "figd_" "doo_v1_" "dor_v1_" "CLOJARS_"
    "pk.eyJ" "sk.eyJ" "tk.eyJ")
  "The prefixes of tokens of well-known services.")

;;; The following functions take positions in a string instead of parts of it, so that they make no
;;; copies of secrets.

(defun part-at-p (part string start end)
  "Returns true if PART is in STRING at START, in any case, and does not extend beyond END."
  (let ((stop (+ start (length part))))
    (and (<= 0 start) (<= stop end) (string-equal part string :start2 start :end2 stop))))

(defun ends-with-p (string start end endings)
  "Returns true if STRING between START and END ends with one of ENDINGS."
  (some (lambda (ending) (and (<= (length ending) (- end start)) (part-at-p ending string (- end (length ending)) end))) endings))

(defun secret-word-p (string start end)
  "Returns true if the word of STRING between START and END shows that the name is that of a
  secret."
  (or (some (lambda (word) (and (= (length word) (- end start)) (part-at-p word string start end))) *secret-words*)
      (loop for at from start below end
            thereis (some (lambda (stem)
                            (and (part-at-p stem string at end)
                                 ;; TOKENIZER and TOKENIZERS are programs.
                                 (not (part-at-p "TOKENIZ" string at end))))
                          *secret-stems*))
      (and (ends-with-p string start end *secret-endings*)
           (not (ends-with-p string start end *plain-endings*))
           (not (ends-with-p string start (1- end) *plain-endings*)))))

(defun secret-words-p (string start end)
  "Returns true if a word of the name between START and END makes it the name of a secret. Words are
  runs of letters, and the parts of a run that are separated between a small letter and a capital:
  `apiKeyProd2` has four words, including the run itself."
  (loop for from = (position-if #'alpha-char-p string :start start :end end)
          then (position-if #'alpha-char-p string :start to :end end)
        while from
        for to = (or (position-if-not #'alpha-char-p string :start from :end end) end)
        thereis (or (secret-word-p string from to)
                    (loop with part = from
                          for at from (1+ from) to to
                          thereis (when (or (= at to) (and (lower-case-p (char string (1- at))) (upper-case-p (char string at))))
                                    (prog1 (secret-word-p string part at) (setf part at)))))))

(defun secret-variable-p (name &optional (start 0) (end (length name)))
  "Returns true if the value of the environment variable NAME, or of the one that NAME has between
  START and END, is to be hidden from code under check."
  (flet ((one-of-p (names test)
           (some (lambda (other) (funcall (the function test) other name :start2 start :end2 end)) names)))
    (and (not (one-of-p *plain-variables* #'string=))
         (or (one-of-p *secret-variables* #'string-equal)
             (search "CONNECTION_STRING" name :test #'char-equal :start2 start :end2 end)
             (secret-words-p name start end)))))

(defun user-before-host-p (value)
  "Returns true if VALUE contains `user:password@`, or a URL with any text before the @ of its
  host."
  (loop for at = (position #\@ value) then (position #\@ value :start (1+ at))
        while at
        ;; RFC 3986, 3.2: the authority begins after two slashes, and ends at the first of these.
        thereis (let* ((start (1+ (or (position-if (lambda (char) (find char "/?# ,;\"'=")) value :end at :from-end t) -1)))
                       (url (and (>= start 3) (string= "://" value :start2 (- start 3) :end2 start))))
                  (and (< start at)
                       (or url (let ((colon (position #\: value :start start :end at))) (and colon (< start colon))))))))

(defun secret-field-p (value)
  "Returns true if VALUE contains the name of a secret with a value: `NAME=`, `NAME: ` or
  `\"NAME\":`, with or without blanks before the sign. A colon alone does not count, since it is
  also between the names of directories."
  (loop for sign = (position-if (lambda (char) (find char "=:")) value)
          then (position-if (lambda (char) (find char "=:")) value :start (1+ sign))
        while sign
        thereis (flet ((before (end test)
                         (let ((last (position-if-not test value :end end :from-end t))) (if last (1+ last) 0))))
                  (let* ((close (before sign #'blank-p))
                         (end (before close (lambda (char) (find char "\"'\\"))))
                         (start (before end (lambda (char) (or (alphanumericp char) (find char "_-."))))))
                    (and (< start end)
                         (or (char= #\= (char value sign))
                             (< end close)
                             (and (< (1+ sign) (length value)) (blank-p (char value (1+ sign)))))
                         (secret-variable-p value start end))))))

(defun token-p (value)
  "Returns true if VALUE has a token of a well-known service between blanks, quotes and separators."
  (flet ((token-char-p (char) (or (alphanumericp char) (find char "_-.+=")))
         (separator-p (char) (or (blank-p char) (find char "\"',;"))))
    (loop for start = (position-if-not #'separator-p value) then (position-if-not #'separator-p value :start end)
          while start
          for end = (or (position-if #'separator-p value :start start) (length value))
          thereis (and (>= (- end start) 20)
                       (null (position-if-not #'token-char-p value :start start :end end))
                       (some (lambda (beginning) (string= beginning value :start2 start :end2 (min end (+ start (length beginning)))))
                             *token-beginnings*)))))

(defun numbered-token-p (value)
  "Returns true if VALUE contains a token that begins with a number and a colon, like those of
  Telegram."
  (loop for colon = (position #\: value) then (position #\: value :start (1+ colon))
        while colon
        thereis (flet ((token-char-p (char) (or (alphanumericp char) (find char "_-"))))
                  (let ((digits (position-if-not #'digit-char-p value :end colon :from-end t))
                        (end (position-if-not #'token-char-p value :start (1+ colon))))
                    (and (>= (- colon (if digits (1+ digits) 0)) 8)
                         (>= (- (or end (length value)) (1+ colon)) 30))))))

(defun user-option-p (value)
  "Returns true if VALUE contains an option with a user and a password: `-u NAME:PASSWORD`,
  `--user=NAME:PASSWORD`."
  (loop for option in '("-u" "--user" "-U" "--proxy-user")
        thereis (loop for at = (search option value) then (search option value :start2 (1+ at))
                      while at
                      thereis (and (or (zerop at) (blank-p (char value (1- at))))
                                   (let* ((after (+ at (length option)))
                                          (start (position-if-not (lambda (char) (or (blank-p char) (find char "=\"'"))) value :start after))
                                          (end (and start (or (position-if #'blank-p value :start start) (length value))))
                                          (colon (and start (position #\: value :start start :end end))))
                                     (and colon
                                          (or (< after start) (= (length option) 2))
                                          (< start colon (1- end))
                                          (null (find #\/ value :start start :end colon))))))))

(defun secret-value-p (value)
  "Returns true if VALUE contains a password or a token, whatever the name of its variable."
  (or (some (lambda (part) (search part value :test #'char-equal)) *secret-parts*)
      (secret-field-p value)
      (token-p value)
      (numbered-token-p value)
      (user-option-p value)
      (user-before-host-p value)))

(defun secret-entry-p (entry)
  "Returns true if ENTRY, NAME=VALUE, is to be hidden from code under check."
  (let ((end (position #\= entry)))
    (and end (plusp end)
         (or (secret-variable-p (subseq entry 0 end))
             (let ((value (subseq entry (1+ end))))
               (unwind-protect (secret-value-p value)
                 (fill value #\Nul)))))))

(defun octet-at (address)
  (sb-alien:deref (sb-alien:sap-alien (int-sap address) (* (sb-alien:unsigned 8)))))

(defun entry-at (address)
  "The zero-terminated string at ADDRESS. Each octet is a character. Nothing but this string has the
  characters, so that a secret is gone from the heap once the string is overwritten."
  (let ((entry (make-string (loop for length from 0
                                  until (zerop (octet-at (+ address length)))
                                  finally (return length)))))
    (dotimes (i (length entry) entry)
      (setf (char entry i) (code-char (octet-at (+ address i)))))))

(defun wipe-entry (address entry)
  "Overwrites the text after the name in ENTRY, which is at ADDRESS."
  (loop for at from (+ address 1 (position #\= entry)) below (+ address (length entry))
        do (setf (sb-alien:deref (sb-alien:sap-alien (int-sap at) (* (sb-alien:unsigned 8)))) 0)))

(defun first-environment ()
  "Returns the start and end in memory of the initial environment of this process (proc(5), stat:
  env_start, env_end), or NIL. This memory keeps variables that were unset or changed since."
  (ignore-errors
   (let* ((stat (with-open-file (in "/proc/self/stat" :external-format :latin-1) (read-line in)))
          ;; The fields after the program's name, which may contain blanks; the first of these is
          ;; the third field.
          (fields (with-input-from-string (in stat :start (1+ (position #\) stat :from-end t)))
                    (with-standard-io-syntax
                      (let ((*read-eval* nil) (*package* (find-package "KEYWORD"))) (loop for field = (read in nil) while field collect field)))))
          (start (nth 47 fields)) (end (nth 48 fields)))
     (and (integerp start) (integerp end) (< 0 start end) (values start end)))))

(defun forget-secrets ()
  "Removes the secrets from this process's environment, and erases them from the memory that
  /proc/self/environ shows, including those that were unset before. The strings that are made
  meanwhile are overwritten."
  (let ((names '()) (entries (sb-alien:extern-alien "environ" (* sb-alien:unsigned-long))))
    (unless (sb-alien:null-alien entries)
      (loop for i from 0
            for address = (sb-alien:deref entries i)
            until (zerop address)
            do (let ((entry (entry-at address)))
                 (when (secret-entry-p entry)
                   (push (subseq entry 0 (position #\= entry)) names)
                   (wipe-entry address entry))
                 (fill entry #\Nul))))
    (multiple-value-bind (start end) (first-environment)
      (when start
        (loop with address = start
              while (< address end)
              do (let ((entry (entry-at address)))
                   (when (secret-entry-p entry) (wipe-entry address entry))
                   (incf address (1+ (length entry)))
                   (fill entry #\Nul)))))
    (dolist (name names) (sb-posix:unsetenv name))))

(defconstant +rlimit-cpu+ 0)
(defconstant +rlimit-fsize+ 1)
(defconstant +rlimit-core+ 4)
(defconstant +rlimit-nofile+ 7)

(defun set-limit (resource soft hard)
  (with-octets (limits (soft hard))
    (call-c "setrlimit" sb-alien:int (sb-alien:int resource) (sb-alien:unsigned-long limits))))

(defconstant +rlimit-sigpending+ 11)
(defconstant +own-timers+ 64 "The number of timers and queued signals that a confined process may add to those of its user.")

(defun queued-signals ()
  "Returns the number of signals that are queued for this user, one for each timer of the kernel,
  and the maximum; NIL if the system does not report them."
  (handler-case
      (with-open-file (in "/proc/self/status" :external-format :latin-1)
        (loop for line = (read-line in nil)
              while line
              when (eql 0 (search "SigQ:" line))
                return (let ((slash (position #\/ line)))
                         (values (parse-integer line :start 5 :end slash) (parse-integer line :start (1+ slash))))))
    ((or stream-error file-error parse-error) () nil)))

(defun limit-timers ()
  "Limits the timers that this process can make. The kernel counts the timers of all the user's
  programs together, so that other programs could get none."
  (multiple-value-bind (queued limit) (queued-signals)
    (let ((limit (min (+ (or queued 0) +own-timers+) (or limit most-positive-fixnum))))
      (set-limit +rlimit-sigpending+ limit limit))))

(defun limit-copy (seconds)
  "Limits the resources of this process: CPU time (a little more than SECONDS from now), file sizes
  and descriptors; turns core dumps off."
  (let ((cpu (max 1 (ceiling (+ seconds 1 (/ (get-internal-run-time) internal-time-units-per-second))))))
    (set-limit +rlimit-cpu+ cpu (+ cpu 1)))
  (set-limit +rlimit-fsize+ (* 256 1024 1024) (* 256 1024 1024))
  (set-limit +rlimit-core+ 0 0)
  (set-limit +rlimit-nofile+ 512 512))

) ; #+linux
