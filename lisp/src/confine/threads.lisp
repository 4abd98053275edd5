;;;; The looser confinement of a copy that runs code under test, if the person's own settings
;;;; request it (`eval.in_copy`). The copy's filter also allows threads of its own and, in a network
;;;; namespace of its own, TCP and UDP. That namespace has only a loopback interface: the copy can
;;;; reach neither the machine's services nor the network. Files, programs, other processes and
;;;; memory are restricted as for every copy.

(in-package :consort)

#+linux
(progn

;;; The network

(defconstant +clone-newnet+ #x40000000)
(defconstant +siocsifflags+ #x8914)
(defconstant +iff-up-running+ #x41)
(defconstant +af-inet+ 2)
(defconstant +af-inet6+ 10)

(defparameter *buffers-of-sockets*
  '(("/proc/sys/net/ipv4/tcp_rmem" "4096 131072 262144") ("/proc/sys/net/ipv4/tcp_wmem" "4096 16384 262144"))
  "Settings of the namespace: the maximum memory of a socket for each direction. The host counts
  this amount for each socket, since the system does not include it in the memory of a process.")

(defun raise-loopback ()
  "Brings up the loopback interface of this network namespace. Returns true if the system did it."
  (let ((socket (system-call (number-here '(socket 41 198)) +af-inet+ 2 0)))
    (and (>= socket 0)
         (unwind-protect
              ;; struct ifreq: 16 octets of name, 16 bits of flags.
              (with-octets (request (#x6f6c 0 +iff-up-running+) 40)
                (zerop (system-call (number-here '(ioctl 16 29)) socket +siocsifflags+ request)))
           (sb-posix:close socket)))))

(defun enter-own-network ()
  "Moves into a network namespace of this process's own, with a loopback interface of its own and
  small buffers. Returns true if this succeeded, or NIL and the reason; the namespace may be a new
  one even then."
  (flet ((refused (words) (return-from enter-own-network (values nil (format nil "~A: ~A" words (system-message))))))
    (unless (or (enter-user-namespace +clone-newnet+)
                (zerop (system-call (number-here '(unshare 272 97)) +clone-newnet+)))
      (refused "the system makes no network namespace for it"))
    (unless (raise-loopback)
      (refused "the loopback interface of its network namespace does not start"))
    (loop for (file text) in *buffers-of-sockets*
          do (handler-case (write-file-at-once file text)
               (sb-posix:syscall-error (condition)
                 (return-from enter-own-network
                   (values nil (format nil "the memory of its sockets cannot be limited (~A): ~A"
                                       file (system-message (sb-posix:syscall-errno condition))))))))
    t))

(defun name-report-socket (descriptor)
  "Gives the socket DESCRIPTOR, which belongs to the previous network namespace, a name that the
  system chooses, so that code cannot give it another one there."
  (with-octets (address (1))
    (system-call (number-here '(bind 49 200)) descriptor address 2)))

;;; The filter

(defparameter *calls-of-threads*
  '((set_robust_list 273 99) (rseq 334 293) (epoll_create1 291 20) (epoll_ctl 233 21) (epoll_wait 232 nil) (epoll_pwait 281 22) (eventfd2 290 19))
  "Calls that are allowed whatever their arguments: name, number on x86-64, number on arm64.")

(defparameter *calls-of-sockets*
  '((bind 49 200) (listen 50 201) (accept 43 202) (accept4 288 242) (connect 42 203) (getsockname 51 204) (getpeername 52 205)
    (sendto 44 206) (recvfrom 45 207) (shutdown 48 210))
  "Socket calls that are allowed whatever their arguments; those that pass descriptors are not among
  them.")

(defparameter *thread-flags* '(#x3d0f00 #x7d0f00)
  "The flags of clone with which glibc and musl make threads.")

(defparameter *socket-options*
  ;; SOL_SOCKET: REUSEADDR BROADCAST KEEPALIVE OOBINLINE LINGER REUSEPORT RCVTIMEO SNDTIMEO
  '((1 2 6 9 10 13 15 20 21)
    ;; TCP: NODELAY CORK KEEPIDLE KEEPINTVL KEEPCNT DEFER_ACCEPT QUICKACK USER_TIMEOUT
    (6 1 3 4 5 6 9 12 18)
    (41 26)                             ; IPV6: V6ONLY
    (0 1 2))                            ; IP: TOS TTL
  "The options that may be set, after each level. The sizes of buffers are not among them.")

;;; TYPE ERROR SNDBUF RCVBUF ACCEPTCONN PROTOCOL DOMAIN
(defparameter *more-readable-options* '((1 3 4 7 8 30 38 39)))

(defun only-options (options)
  "Allows the call if its level and its option are in OPTIONS."
  (append (list (load-argument 1))
          (loop for (level . names) in options
                for rulings = (apply #'only-values 2 names)
                append (list* (jump-equal level 0 (length rulings)) rulings))
          (refuse-call)))

(defun only-new-threads ()
  "Allows clone for a thread of this process."
  (append (list (load-word 20) (jump-equal 0 1 0) (answer +eperm+)) ; the flags' high half
          (apply #'only-values 0 *thread-flags*)))

(defun only-internet-sockets ()
  "Allows socket for TCP and UDP. Unix sockets are not allowed, because other programs have theirs
  in the file system; neither are sockets of the kernel."
  (append (list (load-argument 0) (jump-equal +af-inet+ 2 0) (jump-equal +af-inet6+ 1 0) (answer +eperm+)
                ;; SOCK_STREAM, SOCK_DGRAM.
                (load-argument 1) (keep-bits #xf) (jump-equal 1 2 0) (jump-equal 2 1 0) (answer +eperm+))
          (only-values 2 0 6 17)))      ; TCP, UDP

(defun rulings-for-threads (network)
  "The rules that only a copy for code under test has. NETWORK is true if the network is its own."
  (loop for (call . ruling) in `(,@(loop for call in *calls-of-threads* collect (cons call (allow)))
                                 (,*clone* ,@(only-new-threads))
                                 ,@(when network
                                     `(,@(loop for call in *calls-of-sockets* collect (cons call (allow)))
                                       ((socket 41 198) ,@(only-internet-sockets))
                                       ((setsockopt 54 208) ,@(only-options *socket-options*))
                                       ((getsockopt 55 209)
                                        ,@(only-options (loop for (level . names) in *socket-options*
                                                              collect (list* level (append names (cdr (assoc level *more-readable-options*))))))))))
        for number = (number-here call)
        when number collect (cons number ruling)))

(defun confine-with-threads (directory readable report)
  "Acts as CONFINE, for code under test; REPORT is the descriptor of the host's socket. A further
  value is the reason why the network is not the copy's own, or NIL if it is."
  (multiple-value-bind (network why-not) (enter-own-network)
    (name-report-socket report)
    (multiple-value-bind (landlock confined why)
        (confine directory readable
                 (lambda (landlock)
                   (install-filter (filter-program (sb-posix:getpid) landlock (rulings-for-threads network))))
                 network)
      (when confined (allow-other-threads))
      (values landlock confined why why-not))))

(defun allow-other-threads ()
  "Lets this copy have more threads than the forked one. An unhandled error in a thread ends that
  thread."
  (let ((first sb-thread:*current-thread*))
    (setf sb-ext:*invoke-debugger-hook*
          (lambda (condition hook)
            (declare (ignore condition hook))
            (if (eq sb-thread:*current-thread* first) (exit-process 70) (sb-thread:abort-thread)))))
  (when (sb-thread:holding-mutex-p world-lock)
    (sb-thread:release-mutex world-lock)))

) ; #+linux

#-linux
(progn
  (defun confine-with-threads (directory readable report)
    "Acts as CONFINE: there is nothing more to confine with here."
    (declare (ignore report))
    (values-list (append (multiple-value-list (confine directory readable)) '("there are networks of a process's own only on Linux")))))
