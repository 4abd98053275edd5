;;;; The files that a copy of the image may read: the workspace and the files that the person's
;;;; settings name (the host sends both), the file under check and its system, SBCL, installed
;;;; files, and the directories in which ASDF, Quicklisp, ocicl, qlot and Roswell keep sources.
;;;; Files with the person's secrets are excluded, even inside one of these directories.

(in-package :consort)

(defparameter *never-read*
  '(".ssh/" ".gnupg/" ".aws/" ".azure/" ".kube/" ".docker/" ".password-store/" ".mozilla/" ".thunderbird/" ".netrc" ".authinfo" ".authinfo.gpg"
    ".pgpass" ".my.cnf" ".git-credentials" ".npmrc" ".pypirc" ".vault-token" ".bash_history" ".zsh_history" ".cargo/credentials.toml"
    ".cargo/credentials" ".config/gh/" ".config/gcloud/" ".config/git/credentials" ".config/google-chrome/" ".config/chromium/" ".config/BraveSoftware/"
    ".config/microsoft-edge/" ".config/vivaldi/" ".config/opera/" ".config/op/" ".config/Bitwarden/" ".config/keepassxc/" ".config/consort/"
    ".local/share/keyrings/" ".local/share/kwalletd/" ".local/state/consort/" ".cache/consort/" ".snap/" "snap/firefox/" "snap/chromium/" ".var/app/"
    ".claude/" ".claude.json" ".codex/" ".gemini/" ".copilot/" ".config/github-copilot/" ".config/opencode/" ".cache/huggingface/token" ".oci/" ".fly/" ".m2/"
    ".gradle/" ".gem/" ".bundle/" ".config/composer/" ".composer/" ".config/containers/" ".config/hub" ".config/glab-cli/" ".config/rclone/" ".config/doctl/"
    ".config/heroku/" ".terraform.d/" ".s3cfg" ".boto" ".config/mozilla/" ".librewolf/" ".config/Signal/" ".config/Slack/" ".config/discord/" ".config/Code/"
    ".config/1Password/" ".config/sops/" ".age/" ".bitcoin/" ".ethereum/" ".config/solana/" ".electrum/" ".Xauthority" ".ICEauthority" ".config/pulse/cookie"
    ".subversion/" ".pki/" ".purple/" ".weechat/" ".irssi/" ".mutt/" ".config/msmtp/" ".msmtprc" ".fetchmailrc" ".mbsyncrc" ".python_history" ".psql_history"
    ".mysql_history" ".sqlite_history" ".node_repl_history" ".histfile" ".zhistory" ".sh_history" ".viminfo" ".lesshst" ".local/share/fish/" ".local/share/atuin/"
    ".config/google-chrome-beta/" ".config/google-chrome-unstable/" ".config/google-chrome-for-testing/" ".config/yandex-browser/" ".config/opera-beta/"
    ".config/opera-developer/" ".config/vivaldi-snapshot/" ".config/microsoft-edge-beta/" ".config/microsoft-edge-dev/" ".config/qutebrowser/" ".config/epiphany/"
    ".config/falkon/" ".config/thorium/" ".zen/" ".floorp/" ".waterfox/" ".tor-browser/" ".config/zen/" ".config/librewolf/" ".local/share/torbrowser/"
    ".local/share/qutebrowser/" ".local/share/epiphany/" ".cache/mozilla/" ".cache/google-chrome/" ".cache/chromium/" ".moonchild productions/"
    ".config/Code - OSS/" ".config/VSCodium/" ".config/Cursor/" ".cursor/" ".vscode-server/" ".local/share/code-server/" ".local/share/opencode/" ".continue/"
    ".config/anthropic/" ".config/openai/" ".config/goose/" ".kaggle/" ".databrickscfg" ".snowflake/" ".snowsql/" ".netlify/" ".config/netlify/" ".config/stripe/"
    ".local/share/com.vercel.cli/" ".config/vercel/" ".config/hcloud/" ".config/scw/" ".config/linode-cli" ".aliyun/" ".tccli/" ".bluemix/" ".config/helm/"
    ".config/argocd/" ".pulumi/" ".hgrc" ".config/hg/" ".curlrc" ".wgetrc" ".ssh2/" ".putty/" ".config/filezilla/" ".config/remmina/" ".local/share/remmina/" ".vnc/"
    ".config/syncthing/" ".local/state/syncthing/" ".config/wireguard/" ".monero/" ".litecoin/" ".zcash/" ".dogecoin/" ".config/Exodus/" ".config/Ledger Live/"
    ".config/keybase/" ".local/share/TelegramDesktop/" ".config/Element/" ".local/share/pass/" ".local/share/password-store/" ".config/Yubico/" ".config/age/"
    ".minisign/" ".step/" ".terraformrc" ".config/nix/netrc" ".jira.d/" ".config/jgit/" ".local/share/zsh/" ".config/fish/fish_history" ".sbcl_history"
    ".local/share/evolution/" ".local/share/gnupg/" ".local/state/bash/" ".local/state/zsh/")
  "Files and directories with secrets, relative to a home directory, that a copy never reads. The
  name of a directory ends with a slash.")

(defparameter *xdg-directories*
  '(("XDG_CONFIG_HOME" . ".config/") ("XDG_STATE_HOME" . ".local/state/") ("XDG_DATA_HOME" . ".local/share/") ("XDG_CACHE_HOME" . ".cache/"))
  "An alist from environment variables that name a directory to the default of that directory,
  relative to the home directory.")

(defparameter *never-read-of-variables*
  '(("GNUPGHOME" "") ("AWS_SHARED_CREDENTIALS_FILE" "") ("AWS_CONFIG_FILE" "") ("AWS_WEB_IDENTITY_TOKEN_FILE" "") ("KUBECONFIG" "") ("NETRC" "") ("DOCKER_CONFIG" "")
    ("CARGO_HOME" "credentials.toml" "credentials") ("PGPASSFILE" "") ("GOOGLE_APPLICATION_CREDENTIALS" "") ("CLOUDSDK_CONFIG" "") ("AZURE_CONFIG_DIR" "") ("GH_CONFIG_DIR" "")
    ("PASSWORD_STORE_DIR" "") ("NPM_CONFIG_USERCONFIG" "") ("npm_config_userconfig" "") ("BOTO_CONFIG" "") ("OCI_CLI_CONFIG_FILE" "") ("RCLONE_CONFIG" "")
    ("SOPS_AGE_KEY_FILE" "") ("TF_CLI_CONFIG_FILE" "") ("DATABRICKS_CONFIG_FILE" "") ("HF_TOKEN_PATH" "") ("HF_HOME" "token") ("CLAUDE_CONFIG_DIR" "") ("CODEX_HOME" "")
    ("XAUTHORITY" "") ("ICEAUTHORITY" "") ("HISTFILE" "") ("MYSQL_HISTFILE" "") ("PSQL_HISTORY" "") ("LESSHISTFILE" "") ("XDG_RUNTIME_DIR" "consort/"))
  "A list of (VARIABLE NAME...) for environment variables that name files or directories which are
  never read. If NAME is empty, the value of VARIABLE is never read. Otherwise the value is a
  directory, in which NAME is never read. A value may be several names separated by colons.")

(defparameter *lisp-dot-files* '(".sbclrc" ".swank.lisp" ".slynk.lisp" ".clinit.cl" ".eclrc" ".stumpwmrc" ".stumpwm.d/")
  "Hidden files and directories of a home directory that belong to Lisp. Permission to read the home
  directory includes these and no other hidden files.")

(defparameter *read-of-system*
  '("/usr/" "/lib/" "/lib32/" "/lib64/" "/bin/" "/opt/" "/nix/store/" "/gnu/store/" "/run/current-system/"
    "/etc/common-lisp/" "/etc/sbcl.rc" "/etc/sbclrc" "/etc/ld.so.cache" "/etc/ld.so.conf" "/etc/localtime" "/etc/timezone" "/etc/os-release"
    "/etc/debian_version" "/etc/lsb-release" "/etc/passwd" "/etc/group" "/etc/nsswitch.conf" "/etc/hosts" "/etc/services" "/etc/protocols" "/etc/mime.types"
    "/etc/ssl/certs/" "/etc/alternatives/" "/etc/locale.conf" "/etc/default/locale"
    "/dev/null" "/dev/zero" "/dev/full" "/dev/random" "/dev/urandom"
    "/proc/self/" "/proc/cpuinfo" "/proc/meminfo" "/proc/version" "/proc/stat" "/proc/loadavg" "/proc/uptime" "/proc/filesystems"
    "/sys/devices/system/cpu/")
  "Installed files, and system files that the C library and Lisp need.")

(defparameter *read-of-home*
  '("common-lisp/" ".local/share/common-lisp/" ".config/common-lisp/" ".cache/common-lisp/" "quicklisp/" ".quicklisp/" ".local/share/ocicl/"
    ".config/ocicl/" ".qlot/" ".cache/qlot/" ".roswell/" ".local/share/roswell/")
  "The usual directories of Lisp sources and their fasls, relative to a home directory.")

(defun real-name (name)
  "The native name of the file or directory NAME, with links resolved. The name of a directory ends
  with a slash. NIL if the file or directory does not exist."
  (let ((found (ignore-errors (probe-file (if (pathnamep name) name (sb-ext:parse-native-namestring name))))))
    (and found (sb-ext:native-namestring found))))

(defun beneath-p (name directory)
  "Returns true if the file NAME is DIRECTORY or is below it. Both are native names. The name of a
  directory ends with a slash."
  (or (string= name directory)
      (and (> (length name) (length directory))
           (string= name directory :end1 (length directory))
           (char= #\/ (char directory (1- (length directory)))))))

(defvar *other-homes* '()
  "Native names of other users' home directories that contain a file or directory that the host
  allows the copy to read, or that are below such a directory.")

(defparameter *users* "/etc/passwd" "The file that lists the system's users.")

(defun homes-of-users ()
  "The native names of the existing home directories of all users, without the root directory."
  (handler-case
      (with-open-file (in *users* :external-format :latin-1)
        (loop for line = (read-line in nil)
              for fields = (and line (uiop:split-string line :separator ":"))
              for home = (and (nth 5 fields) (plusp (length (nth 5 fields))) (real-name (concatenate 'string (string-right-trim "/" (nth 5 fields)) "/")))
              while line
              when (and home (string/= home "/")) collect home))
    ((or file-error stream-error) () '())))

(defun homes-around (names)
  "The users' home directories that contain one of NAMES or are below one. All users
  are considered, because root may work in another user's home directory."
  (remove-if-not (lambda (home) (some (lambda (name) (or (beneath-p name home) (beneath-p home name))) names)) (homes-of-users)))

(defun home-directories ()
  "The native names of the person's home directory, according to the environment and to the user
  database, and of *OTHER-HOMES*."
  (remove-duplicates
   (remove nil (list* (real-name (user-homedir-pathname))
                      (let ((entry (ignore-errors (sb-posix:getpwuid (sb-posix:getuid))))) (and entry (real-name (concatenate 'string (sb-posix:passwd-dir entry) "/"))))
                      *other-homes*))
   :test #'string=))

(defun below-home (names)
  "Returns the native names of those of NAMES, relative names, that exist in one of the home
  directories."
  (loop for home in (home-directories)
        append (loop for name in names
                     for real = (real-name (concatenate 'string home name))
                     when real collect real)))

(defun holds-home-p (directory)
  "Returns true if DIRECTORY, a native name, is a home directory or contains one."
  (some (lambda (home) (beneath-p home directory)) (home-directories)))

(defun holds-work-p (directory)
  "Returns true if the workspace, the current directory of this process, is DIRECTORY or is below
  it. Returns NIL if the workspace has been removed."
  (let* ((here (ignore-errors (sb-posix:getcwd)))
         (work (and here (real-name (concatenate 'string here "/")))))
    (and work (beneath-p work directory))))

(defun names-of-variable (variable)
  "The absolute names in the value of the environment variable VARIABLE: the whole value, and its
  parts between colons. NIL if the variable is not set."
  (let ((value (sb-posix:getenv variable)))
    (and value
         (remove-if-not (lambda (name) (uiop:string-prefix-p "/" name))
                        (remove-duplicates (cons value (uiop:split-string value :separator ":")) :test #'string=)))))

(defun xdg-directories ()
  "An alist from the existing directories that the variables of *XDG-DIRECTORIES* name to their
  defaults relative to the home directory."
  (loop for (variable . usual) in *xdg-directories*
        for value = (sb-posix:getenv variable)
        for real = (and value (uiop:string-prefix-p "/" value) (real-name (concatenate 'string value "/")))
        when real collect (cons real usual)))

(defun never-read-of-environment ()
  "The existing files and directories that must not be read because of environment variables: those
  of *NEVER-READ* in the directories of XDG-DIRECTORIES, and those of *NEVER-READ-OF-VARIABLES*. If
  an XDG variable names a directory that is or contains a home directory, only Consort's own
  directory there is included, because the other names there need not be the files of *NEVER-READ*.
  A name of *NEVER-READ-OF-VARIABLES* that contains a home directory or the workspace is left out."
  (append (loop for (directory . usual) in (xdg-directories)
                append (loop with holds-home = (holds-home-p directory)
                             for name in *never-read*
                             for real = (and (uiop:string-prefix-p usual name)
                                             (or (not holds-home) (uiop:string-suffix-p name "/consort/"))
                                             (real-name (concatenate 'string directory (subseq name (length usual)))))
                             when real collect real))
          (loop for (variable . inner) in *never-read-of-variables*
                append (loop for name in (names-of-variable variable)
                             append (loop for own in inner
                                          for real = (real-name (if (string= own "") name (concatenate 'string name "/" own)))
                                          unless (or (null real) (holds-home-p real) (holds-work-p real)) collect real)))))

(defun never-read-of-host ()
  "The existing directories that Consort's hosts use if XDG_RUNTIME_DIR is not set."
  (loop with user = (sb-posix:getuid)
        for name in (list (format nil "/run/user/~D/consort/" user) (format nil "/tmp/consort-~D/" user))
        for real = (real-name name)
        when real collect real))

(defun directory-of-name (name)
  "The native name of the directory that contains the entry NAME, a native name. Links in the name
  of the directory are resolved; the entry itself may be a link. NIL if there is no such directory."
  (real-name (subseq name 0 (1+ (or (position #\/ name :from-end t) -1)))))

(defun directory-of (name)
  "The native name of the directory that contains the file NAME, a native name, or would contain it
  if the file existed. Links are resolved. NIL if there is no such directory."
  (let ((real (or (real-name (string-right-trim "/" name)) (directory-of-name name))))
    (and real (subseq real 0 (1+ (position #\/ real :from-end t))))))

(defun names-in (directory)
  "The native names of the entries of DIRECTORY, a native name. Links are not resolved. The name of
  a directory ends with a slash. A name that cannot be decoded is left out. NIL if DIRECTORY cannot
  be opened."
  (let ((stream (ignore-errors (sb-posix:opendir directory))))
    (when stream
      (unwind-protect
           (loop for entry = (sb-posix:readdir stream)
                 until (or (null entry) (sb-alien:null-alien entry))
                 ;; NAME is NIL if the entry's name cannot be decoded.
                 for name = (handler-case (sb-posix:dirent-name entry) (error () nil))
                 unless (or (null name) (member name '("." "..") :test #'string=))
                   collect (let* ((path (concatenate 'string directory name))
                                  (stat (ignore-errors (sb-posix:lstat path))))
                             (if (and stat (sb-posix:s-isdir (sb-posix:stat-mode stat))) (concatenate 'string path "/") path)))
        (sb-posix:closedir stream)))))

(defun plain-names-in (directory)
  "The native names of the entries of DIRECTORY. For a home directory, the hidden entries that do
  not belong to Lisp and the directories of XDG-DIRECTORIES are left out, because programs keep more
  tokens, histories and settings there than *NEVER-READ* can list."
  (let ((names (names-in directory)))
    (if (member directory (home-directories) :test #'string=)
        (let ((moved (mapcar #'car (xdg-directories))))
          (remove-if (lambda (name)
                       (let ((own (subseq name (length directory))))
                         (or (member name moved :test #'string=)
                             (and (char= #\. (char own 0)) (not (member own *lisp-dot-files* :test #'string=))))))
                     names))
        names)))

(defun without-secrets (names never)
  "NAMES without the names that are in NEVER or below one of NEVER. A directory that contains one of
  NEVER, or that is or contains a home directory, is replaced by its permitted entries."
  (loop with parted = (append (home-directories) never)
        for name in names
        append (cond ((some (lambda (secret) (beneath-p name secret)) never) '())
                     ((some (lambda (part) (beneath-p part name)) parted) (without-secrets (plain-names-in name) never))
                     (t (list name)))))

(defun without-inner (names)
  "NAMES without those that are below another one of NAMES."
  (let ((outer '()))
    ;; In sorted order, the names below a directory directly follow the directory.
    (dolist (name (sort (copy-list names) #'string<) (nreverse outer))
      (unless (and outer (beneath-p name (first outer)))
        (push name outer)))))

(defun directories-of-lisp ()
  "Returns the directories of SBCL's runtime, core, contribs and sources. Elements may be NIL."
  (append (list (and sb-ext:*runtime-pathname* (directory-of (native-name sb-ext:*runtime-pathname*)))
                (and sb-ext:*core-pathname* (directory-of (native-name sb-ext:*core-pathname*)))
                (let ((home (and (internal-p 'sbcl-directory) (sbcl-directory)))) (and home (real-name home))))
          (loop for (nil translation) in (ignore-errors (logical-pathname-translations "SYS"))
                collect (ignore-errors (real-name (make-pathname :name nil :type nil :version nil
                                                                 :directory (subseq-before-wild (pathname-directory translation))
                                                                 :defaults translation))))))

(defun subseq-before-wild (directory)
  "The components of DIRECTORY, a pathname's directory, before the first that is not a plain name."
  (subseq directory 0 (position-if-not (lambda (part) (or (stringp part) (eq part :absolute))) directory)))

(defun native-name (name)
  "The native name of NAME, a pathname or a native name."
  (if (pathnamep name) (sb-ext:native-namestring name) name))

(defmacro unless-mistaken (form)
  "Evaluates FORM. Returns NIL if an error is signalled or ASDF reports a mistake in the person's
  configuration of ASDF. The condition class of some of these mistakes is a warning, although ASDF
  signals them with ERROR."
  `(handler-case ,form ((or error uiop/configuration:invalid-configuration) () nil)))

(defun directories-of-systems ()
  "Returns the directories in which ASDF and Quicklisp look for systems, the directories of the
  loaded systems, ASDF's cache of fasls, and the XDG data and configuration directories of Common
  Lisp. Elements may be NIL."
  (append
   (loop for (directory) in (unless-mistaken (asdf/source-registry:flatten-source-registry)) collect (ignore-errors (real-name directory)))
   (loop for entry in (and (listp asdf:*central-registry*) asdf:*central-registry*)
         collect (ignore-errors (real-name (uiop:ensure-directory-pathname (eval entry)))))
   (loop for name in (asdf:already-loaded-systems)
         for source = (ignore-errors (asdf:system-source-directory (asdf:registered-system name)))
         collect (and source (real-name source)))
   (list (ignore-errors (real-name (uiop:resolve-location asdf:*user-cache* :ensure-directory t)))
         (let ((home (find-symbol "*QUICKLISP-HOME*" (or (find-package "QUICKLISP-CLIENT") :cl))))
           (and home (boundp home) (ignore-errors (real-name (symbol-value home)))))
         (ignore-errors (real-name (uiop:xdg-data-home "common-lisp/")))
         (ignore-errors (real-name (uiop:xdg-config-home "common-lisp/"))))))

(sb-ext:defglobal *persons-translations* '() "In a copy: ASDF's output translations according to
  the person's configuration, in ASDF's own representation.")

(defun directories-of-fasls ()
  "Returns the directories into which ASDF writes fasls according to *PERSONS-TRANSLATIONS*, without
  those that are or contain a home directory."
  (let ((homes (home-directories)))
    (loop for (nil place) in (coerce *persons-translations* 'list)
          for directory = (and (pathnamep place)
                               (ignore-errors (real-name (make-pathname :name nil :type nil :version nil :defaults place
                                                                        :directory (subseq-before-wild (pathname-directory place))))))
          unless (or (null directory) (some (lambda (home) (beneath-p home directory)) homes))
            collect directory)))

(defun directories-of-text (params)
  "Returns the native names that the copy may read because PARAMS name a file in them: the directory
  of each file and system definition. A directory that is or contains a home directory is replaced
  by the file and the directory's plain files. For each of the field asd_files, which may be links,
  the directory of the link and the file to which the link leads are included."
  (let ((homes (home-directories))
        (names (append (list (field params "path") (field params "asd"))
                       (coerce (field params "only" #()) 'list)
                       (map 'list (lambda (text) (field text "path")) (field params "texts" #()))))
        (definitions (coerce (field params "asd_files" #()) 'list)))
    (flet ((readable (names place)
             "The names that may be read because of NAMES. PLACE is the function from a name to the
             name, such as that of a directory, that may be read because of it."
             (loop for name in names
                   for place-of-name = (and (stringp name) (ignore-errors (funcall (the function place) name)))
                   when place-of-name
                     append (if (some (lambda (home) (beneath-p home place-of-name)) homes)
                                (cons name (remove-if (lambda (name) (char= #\/ (char name (1- (length name))))) (plain-names-in place-of-name)))
                                (list place-of-name)))))
      (append (readable names #'directory-of)
              (readable definitions #'directory-of-name)
              (readable definitions #'real-name)))))

(defun readable-names (params)
  "The native names of all files and directories that the copy with the parameters PARAMS may read.
  A directory stands for everything below it."
  (let* ((told (map 'list (lambda (name) (ignore-errors (real-name name))) (field params "read" #())))
         (*other-homes* (homes-around (remove nil told))))
    (without-inner
     ;; The scratch directory and the core may be in Consort's own directories, in which the copy
     ;; may read nothing else.
     (append (remove nil (list (and (field params "scratch") (real-name (scratch-directory params)))
                               (and sb-ext:*core-pathname* (real-name sb-ext:*core-pathname*))))
             (without-secrets (remove nil (append told
                                                  (mapcar #'real-name *read-of-system*)
                                                  (below-home *read-of-home*)
                                                  (directories-of-lisp)
                                                  (directories-of-systems)
                                                  (directories-of-fasls)
                                                  (directories-of-text params)))
               (append (below-home *never-read*) (never-read-of-environment) (never-read-of-host)))))))

;;; Reports of refused files

(defun kept-from-reading-p (name)
  "Returns true if the file NAME, an absolute native name, exists and only the confinement keeps
  this process from reading it: access(2) permits reading, but open(2) fails with EACCES."
  (and (plusp (length name))
       (char= #\/ (char name 0))
       (ignore-errors (sb-posix:access name sb-posix:r-ok) t)
       (handler-case (progn (sb-posix:close (sb-posix:open name (logior sb-posix:o-rdonly sb-posix:o-nonblock))) nil)
         (sb-posix:syscall-error (condition) (= (sb-posix:syscall-errno condition) sb-posix:eacces)))))

(defun unread-file (condition &optional (depth 3))
  "The native name of a file that CONDITION names and that the confinement keeps from being read.
  NIL if there is none. Names are sought in the pathname of a FILE-ERROR, in the format arguments,
  in conditions among these down to DEPTH levels, and in the report."
  (flet ((unread (thing)
           (typecase thing
             (pathname (unread-file-name (ignore-errors (sb-ext:native-namestring (merge-pathnames thing)))))
             (string (some #'unread-file-name (possible-names thing)))
             (condition (and (plusp depth) (unread-file thing (1- depth)))))))
    (or (and (typep condition 'file-error) (unread (ignore-errors (pathname (file-error-pathname condition)))))
        (and (typep condition 'simple-condition)
             (some #'unread (ignore-errors (condition-arguments condition))))
        (unread (ignore-errors (princ-to-string condition))))))

(defun unread-file-name (name)
  "NAME, if the confinement keeps that file from being read; otherwise NIL."
  (and name (kept-from-reading-p name) name))

(defun possible-names (text)
  "The parts of TEXT between spaces, tabs, line feeds, quotes, colons, commas, semicolons and
  parentheses."
  (uiop:split-string text :separator '(#\Space #\Newline #\Tab #\" #\' #\: #\, #\; #\( #\))))
