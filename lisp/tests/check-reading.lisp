;;;; Reads that code under check must not succeed in: files that are none of its business, and the
;;;; secrets in the environment. Each refusal names the key that would allow it.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun write-text (name text)
  "Make the file NAME, with its directories, contain TEXT. NAME."
  (ensure-directories-exist name)
  (with-open-file (out name :direction :output) (write-string text out))
  name)

(defun findings-of (form &rest options)
  "The diagnostics of a text that evaluates FORM, a string, when it is compiled. It warns of
  SUCCEEDED when that returns true."
  (diagnostics-of (apply #'check-lines (coerce (format nil "(eval-when (:compile-toplevel) (when ~A (warn \"SUCCEEDED\")))" form) 'text) options)))

(defun read-form (name) (format nil "(with-open-file (in ~S) (read-line in))" name))

(defun succeeded-p (diagnostics) (some (lambda (d) (search "SUCCEEDED" (field d "message"))) diagnostics))

(defun may-read (name words &rest options)
  (let ((found (apply #'findings-of (read-form name) options)))
    (expect (succeeded-p found) (format nil "~A is read: ~A" words (mapcar (lambda (d) (field d "message")) found)))))

(defun may-not-read (name words &rest options)
  (let ((found (apply #'findings-of (read-form name) options)))
    (expect (and (not (succeeded-p found))
                 (equal '("confined") (mapcar (lambda (d) (field d "code")) found))
                 (search "check.read" (field (first found) "message"))
                 (search name (field (first found) "message")))
            (format nil "~A is not read, and the message names the key: ~A" words (mapcar (lambda (d) (field d "message")) found)))))

(defun real-directory (name) (real-name name))

(test "files"
  (call-with-scratch
   (lambda (directory)
     (let* ((directory (real-directory directory))
            (home (concatenate 'string directory "home/"))
            (workspace (concatenate 'string home "src/app/"))
            (inside (write-text (concatenate 'string workspace "data.txt") "inside"))
            (file (write-text (concatenate 'string workspace "code.lisp") ""))
            (note (write-text (concatenate 'string home "note.txt") "note"))
            (library (write-text (concatenate 'string home "common-lisp/library/data.txt") "library"))
            (other (write-text (concatenate 'string directory "other/data.txt") "other"))
            (beside (write-text (concatenate 'string directory "elsewhere/data.txt") "beside"))
            (single (write-text (concatenate 'string directory "elsewhere/code.lisp") ""))
            (secrets (loop for name in '(".ssh/id_ed25519" ".gnupg/key" ".aws/credentials" ".netrc" ".mozilla/firefox/cookies.sqlite" ".config/gh/hosts.yml")
                           collect (write-text (concatenate 'string home name) "secret")))
            (link (concatenate 'string workspace "link.txt")))
       (sb-posix:symlink (first secrets) link)
       (sb-posix:setenv "HOME" home 1)
       (loop for limit from 1 to (landlock-abi)
             do (let ((*landlock-limit* limit) (read (list workspace)))
                  (may-read inside (format nil "a file of the workspace, Landlock ~D," limit) :path file :read read)
                  (may-not-read note (format nil "a file beside the workspace, Landlock ~D," limit) :path file :read read)
                  (may-not-read (first secrets) (format nil "a key, Landlock ~D," limit) :path file :read read)))
       (let ((read (list workspace)))
         (may-read library "a library where ASDF looks for them" :path file :read read)
         (may-not-read other "a file elsewhere" :path file :read read)
         (may-not-read (first secrets) "a key, by a warm copy," :path file :read read :warm t)
         (may-read inside "a file of the workspace, by a warm copy," :path file :read read :warm t)
         (may-read other "a file that the settings name" :path file :read (list workspace (concatenate 'string directory "other/")))
         (may-read other "a file that the settings name itself" :path file :read (list workspace other))
         (may-read beside "the neighbour of a file outside the workspace" :path single :read read)
         (let ((found (findings-of (read-form link) :path file :read read)))
           (expect (and found (not (succeeded-p found))) "a link in the workspace leads to no secret"))
         ;; A link called like a system definition opens nothing beside the file it leads to.
         (let ((definition (concatenate 'string workspace "link.asd"))
               (target (write-text (concatenate 'string directory "private/notes") "notes"))
               (private (write-text (concatenate 'string directory "private/diary") "diary")))
           (sb-posix:symlink target definition)
           (loop for limit from 1 to (landlock-abi)
                 do (let ((*landlock-limit* limit))
                      (may-not-read private (format nil "the neighbour of what a definition leads to, Landlock ~D," limit)
                                    :path file :read read :asd-files (list definition))))
           (may-read inside "the neighbour of the link" :path file :read '() :asd-files (list definition)))
         (expect (succeeded-p (findings-of "(progn (require :sb-cover) t)" :path file :read read)) "a contrib of SBCL is loaded"))
       ;; A name that is in no encoding of this process is passed over.
       (sb-ext:run-program "/bin/sh" (list "-c" "touch \"$(printf 'caf\\351')\"") :directory home)
       ;; A workspace that is the home directory, or has it in it, has the secrets in it too; also
       ;; those of programs that nobody has heard of, and where there is none of the known ones.
       (let ((unheard (list (write-text (concatenate 'string home ".config/unheard-of/session") "secret")
                            (write-text (concatenate 'string home ".unheard-of_history") "secret")))
             (init (write-text (concatenate 'string home ".sbclrc") ";init"))
             (bare (concatenate 'string directory "bare/")))
         (dolist (read (list (list home) (list directory)))
           (dolist (file-of-home unheard) (may-not-read file-of-home "a hidden file" :path file :read read))
           (may-read init "an init file of Lisp" :path file :read read))
         (may-not-read (second unheard) "the hidden neighbour of a file in the home directory" :path (concatenate 'string home "y.lisp") :read '())
         (may-read (first unheard) "a hidden directory that is the workspace" :path file :read (list (concatenate 'string home ".config/unheard-of/")))
         (sb-posix:setenv "HOME" bare 1)
         (may-not-read (write-text (concatenate 'string bare ".unheard-of") "secret") "a hidden file without known secrets" :path file :read (list bare))
         (sb-posix:setenv "HOME" home 1))
       (dolist (read (list (list home) (list directory)))
         (dolist (secret secrets) (may-not-read secret "a secret in the workspace" :path file :read read))
         (may-read note "a file of the workspace that has secrets in it" :path file :read read)
         (may-read inside "a file deeper in it" :path file :read read))
       (may-read beside "the neighbour of a file that is not saved yet" :path (concatenate 'string directory "elsewhere/new.lisp") :read '())
       ;; A file in the home directory itself makes its neighbours readable, and nothing below.
       (may-read note "the neighbour of a file in the home directory" :path (write-text (concatenate 'string home "x.lisp") "") :read '())
       (may-not-read inside "what is deeper" :path (concatenate 'string home "x.lisp") :read '())
       (sb-ext:run-program "/bin/sh" (list "-c" "rm -f caf*") :directory home)
       ;; The home of another user, in which root works.
       (let ((hidden (write-text (concatenate 'string home ".unheard-of") "secret")) (users *users*))
         (sb-posix:setenv "HOME" (concatenate 'string directory "own/") 1)
         (setf *users* (write-text (concatenate 'string directory "users")
                                   (format nil "root:x:0:0::/:/bin/sh~%broken~%dev:x:1000:1000:Dev:~A:/bin/sh~%" (string-right-trim "/" home))))
         (dolist (read (list (list home) (list directory) (list workspace)))
           (may-read inside "a file of a workspace in another's home" :path file :read read)
           (may-not-read (first secrets) "a key of the user in whose home the workspace is" :path file :read read)
           (may-not-read hidden "a hidden file of that user" :path file :read read))
         (setf *users* users)
         (delete-file hidden)
         (sb-posix:setenv "HOME" home 1))
       ;; Naming a secret does not help.
       (may-not-read (first secrets) "a key that the settings name" :path file :read (list workspace (concatenate 'string home ".ssh/")))))))

(defun call-with-environment (entries function)
  "Call FUNCTION while the environment has ENTRIES, a list of names with values."
  (let ((before (loop for (name) in entries collect (cons name (sb-posix:getenv name)))))
    (loop for (name . value) in entries do (sb-posix:setenv name value 1))
    (unwind-protect (funcall function)
      (loop for (name . value) in before do (if value (sb-posix:setenv name value 1) (sb-posix:unsetenv name))))))

(test "files that variables name"
  (call-with-scratch
   (lambda (directory)
     (let* ((home (concatenate 'string (real-directory directory) "home/"))
            (file (write-text (concatenate 'string home "app/code.lisp") ""))
            (inside (write-text (concatenate 'string home "app/data.txt") "inside")))
       (flet ((in-home (name) (concatenate 'string home name)))
         (let ((secrets (loop for name in '("state/consort/token" "cfg/consort/config.toml" "cfg/gh/hosts.yml" "cfg/unheard-of/session" "state/bash/history" "run/consort/x/s" "cache/consort/x"
                                            "gnupg/key" "aws/credentials" "aws/config" "kube/one" "kube/two" "my-netrc" "cargo/credentials.toml" "docker/config.json")
                              collect (write-text (in-home name) "secret")))
               (plain (loop for name in '("cargo/registry/x.lisp" "aws/readme" "kube/readme" "run/other") collect (write-text (in-home name) "plain"))))
           (call-with-environment
            (list (cons "HOME" home) (cons "XDG_STATE_HOME" (in-home "state")) (cons "XDG_CONFIG_HOME" (in-home "cfg")) (cons "XDG_RUNTIME_DIR" (in-home "run"))
                  (cons "XDG_CACHE_HOME" (in-home "cache/")) (cons "GNUPGHOME" (in-home "gnupg")) (cons "AWS_SHARED_CREDENTIALS_FILE" (in-home "aws/credentials"))
                  (cons "AWS_CONFIG_FILE" (in-home "aws/config")) (cons "KUBECONFIG" (format nil "~A:~A" (in-home "kube/one") (in-home "kube/two")))
                  (cons "NETRC" (in-home "my-netrc")) (cons "CARGO_HOME" (in-home "cargo")) (cons "DOCKER_CONFIG" (in-home "docker")))
            (lambda ()
              (dolist (secret secrets) (may-not-read secret "a secret that a variable names" :path file :read (list home)))
              (dolist (name plain) (may-read name "what is beside one" :path file :read (list home)))
              (may-read inside "a file of the workspace" :path file :read (list home))
              ;; Names that are in Consort's own directory do not help.
              (may-not-read (first secrets) "Consort's state, named by the settings," :path file :read (list (in-home "app/") (in-home "state/consort/")))))
           ;; Where a variable names the home directory, what has a usual name there is the
           ;; person's.
           (let ((code (write-text (in-home "Code/data.txt") "mine")))
             (call-with-environment
              (list (cons "HOME" home) (cons "XDG_CONFIG_HOME" home) (cons "GNUPGHOME" home) (cons "KUBECONFIG" "/") (cons "XDG_STATE_HOME" "state"))
              (lambda ()
                (may-read code "a directory called as one of settings" :path file :read (list home))
                (may-read inside "a file of the workspace" :path file :read (list home)))))))))))

(defun text-of-environ ()
  (with-open-file (in "/proc/self/environ" :external-format :latin-1)
    (format nil "~{~A~}" (loop for line = (read-line in nil) while line collect line))))

;; The environment.
(test "environment"
  (expect (equal "sesame" (sb-posix:getenv "CONSORT_TEST_TOKEN")) "the secret is there")
  (dolist (form '("(sb-ext:posix-getenv \"CONSORT_TEST_TOKEN\")"
                  "(some (lambda (entry) (search \"sesame\" entry)) (sb-ext:posix-environ))"
                  "(with-open-file (in \"/proc/self/environ\" :external-format :latin-1) (loop for line = (read-line in nil) while line thereis (search \"sesame\" line)))"))
    (let ((found (findings-of form)))
      (expect (null found) (format nil "~A finds no secret: ~S" form (mapcar (lambda (d) (field d "message")) found)))))
  ;; Variables that were unset or set to something else are where the process began.
  (sb-posix:unsetenv "CONSORT_TEST_UNSET_TOKEN")
  (sb-posix:setenv "CONSORT_TEST_OTHER_TOKEN" "" 1)
  (expect (search "sesame-two" (text-of-environ)) "what was unset is still in this process's memory")
  (dolist (word '("sesame-two" "sesame-three" "sesame-four"))
    (let ((found (findings-of (format nil "(with-open-file (in \"/proc/self/environ\" :external-format :latin-1)
                                          (loop for line = (read-line in nil) while line thereis (search ~S line)))" word))))
      (expect (null found) (format nil "~A is not in the memory of a copy: ~S" word (mapcar (lambda (d) (field d "message")) found)))))
  (expect (search "sesame-four" (text-of-environ)) "and the image still has it")
  (loop for (name . secret) in '(("SSHPASS" . t) ("LDAP_BINDPW" . t) ("DBPWD" . t) ("TS_AUTHKEY" . t) ("DBPASS" . t) ("PHPSESSID" . t) ("dbPassword" . t) ("HTTP_BEARER" . t)
                                 ("GITHUB_TOKEN" . t) ("SECRET_KEY_BASE" . t) ("npm_config__authToken" . t) ("AZURE_STORAGE_SAS" . t)
                                 ("PATH" . nil) ("PWD" . nil) ("OLDPWD" . nil) ("HOME" . nil) ("CL_SOURCE_REGISTRY" . nil) ("TOKENIZERS_PARALLELISM" . nil) ("LANG" . nil))
        do (expect (eq secret (and (secret-variable-p name) t)) (format nil "~A is~:[ no~;~] secret" name secret)))
  (loop for (value . secret) in '(("http://me:word@proxy:8080" . t) ("https://token@host/simple" . t) ("http://proxy:8080/a@b" . nil) ("me@host" . nil)
                                  ("http://a,https://b:c@d" . t) ("-----BEGIN RSA PRIVATE KEY-----" . t) ("/usr/bin" . nil)
                                  ("me:word@proxy:8080" . t) ("postgres://me@db/x" . t) ("git@host:a/b" . nil) ("/opt/jdk@17/bin:/opt/x@2" . nil)
                                  ("AUTHORIZATION: basic eA==" . t) ("Bearer abc" . t) ("Server=db;User=me;Password=word;" . t)
                                  ("ghp_0123456789abcdefghij0123456789abcdef" . t) ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x" . t) ("ski-resort-with-a-long-name" . nil)
                                  ("-Djavax.net.ssl.trustStorePassword=x" . t) ("en_US.UTF-8" . nil))
        do (expect (eq secret (and (secret-value-p value) t)) (format nil "~A is~:[ no~;~] secret" value secret)))
  (loop for value in (list "Basic dXNlcjpwYXNzd29yZA==" "{\"api_key\": \"abc\"}" "{\"token\" : \"abc\"}" "{\\\"token\\\" : 1}" "{'secret' : 1}" "password = abc" "token: abc"
                           "https://x/?key=abc" "https://x/?a=b&apiKey=abc" "X-Api-Key: abc" "-u joe:pw" "curl -s --user joe:pw" "--user=joe:pw" "-ujoe:pw"
                           "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw" "https://x/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe"
                           "pk.eyJ1IjoibWUiLCJhIjoiY2sifQ.abc" "x, ghp_0123456789abcdefghij0123456789abcdef"
                           "--auth-key=abc")
        do (expect (secret-value-p value) (format nil "~A is secret" value)))
  (loop for value in '("/home/me/token:/usr/bin" "/opt/api-key:/usr/bin:/bin" "(:source-registry (:tree \"/home/me/secret/\") :inherit-configuration)"
                       "(:output-translations (t (\"/home/me/key/\" :implementation)))" "rs=0:di=01;34:ln=01;36:*.tar=01;31" "-u" "-u me" "-Djava.awt.headless=true"
                       "/home/me/sk-long-name-of-a-directory/bin:/bin" "unix:path=/run/user/1000/bus" ":0.0" "tokenizer=fast" "12345678:short" "a=b")
        do (expect (not (secret-value-p value)) (format nil "~A is no secret" value)))
  (expect (succeeded-p (findings-of "(sb-ext:posix-getenv \"LANG\")")) "the rest of the environment is there")
  (expect (equal "sesame" (sb-posix:getenv "CONSORT_TEST_TOKEN")) "and the image still has the secret")
  (loop for name in '("GITHUB_TOKEN2" "TOKEN1" "API_KEY1" "SSHKEY" "STRIPEKEY" "PRIVKEY" "ENCKEY" "DB_PASS1" "BITBUCKET_APP_PASS2" "AWSSECRETKEY2" "SECRETVALUE" "TOKENVALUE"
                      "apiKeyProd" "apiKeyProd2" "MY_SSHKEYS" "CREDENTIALSFILE" "KEY2PROD" "dbPassProd" "sshPin" "PW2")
        do (expect (secret-variable-p name) (format nil "~A is secret" name)))
  (loop for name in '("KEYBOARD" "MONKEY" "MONKEYS" "SPIDERMONKEY_HOME" "HOTKEY2" "COMPASS_DIR" "TOKENIZERS_PARALLELISM" "MYTOKENIZER" "PATH2" "HOME1" "KEYMAP"
                      "XDG_RUNTIME_DIR" "XDG_STATE_HOME" "GNUPGHOME" "SBCL_CORE" "TERM_PROGRAM" "GIT_AUTHOR_NAME" "ProgramFiles" "QUICKLISP_HOME" "PASSENGER_ENV" "x86" "_" "")
        do (expect (not (secret-variable-p name)) (format nil "~A is no secret" name)))
  (loop for (name . secret) in '(("GITHUB_TOKEN" . t) ("AWS_SECRET_ACCESS_KEY" . t) ("api_key" . t) ("KEY" . t) ("SSH_AUTH_SOCK" . t) ("DATABASE_URL" . t)
                                 ("DB_PASSWORD" . t) ("HOME" . nil) ("PATH" . nil) ("MONKEY" . nil) ("TOKENIZER" . nil) ("KEYBOARD" . nil) ("XDG_DATA_HOME" . nil)
                                 ("SECRET_KEY_BASE" . t) ("npm_config__authToken" . t) ("GITHUBTOKEN" . t) ("TOKEN_2" . t) ("MYSQL_PWD" . t) ("PWD" . nil) ("OLDPWD" . nil)
                                 ("BW_SESSION" . t) ("RESTIC_PASSWORD_COMMAND" . t) ("AZURE_STORAGE_CONNECTION_STRING" . t) ("ConnectionStrings__Default" . t)
                                 ("OTEL_EXPORTER_OTLP_HEADERS" . t) ("AWS_ACCESS_KEY_ID" . t) ("BORG_PASSPHRASE" . t) ("SLACK_WEBHOOK_URL" . t) ("OAUTH" . t) ("MASTER_SEED" . t)
                                 ("LC_ALL" . nil) ("CL_SOURCE_REGISTRY" . nil) ("ASDF_OUTPUT_TRANSLATIONS" . nil) ("SBCL_HOME" . nil) ("TMPDIR" . nil))
        do (expect (eq secret (and (secret-variable-p name) t)) (format nil "~A is~:[ no~;~] secret" name secret))))

(finish-tests "reading" :skipped (zerop (landlock-abi)))
