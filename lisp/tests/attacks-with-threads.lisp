;;;; Attacks on the looser profile for code under test (src/confine/threads.lisp): those of
;;;; check-attacks.lisp, which loads this, and others that sockets and threads could make possible.

(in-package :consort)

(defun new-socket (&optional (family 2) (type 1) (protocol 0))
  (call '(41 198) family type protocol))

(defmacro with-address ((address port &optional (family 2)) &body body)
  "BODY with ADDRESS that of PORT on the loopback interface, as struct sockaddr_in."
  `(with-octets (,address ((logior ,family (ash (ldb (byte 8 8) ,port) 16) (ash (ldb (byte 8 0) ,port) 24) (ash #x0100007f 32)) 0))
     ,@body))

(defun port-of (socket)
  "The port that the listening SOCKET has got."
  (with-octets (address (0 0))
    (with-octets (length (16))
      (call '(51 204) socket address length)
      (logior (ash (sb-sys:sap-ref-8 (sb-sys:int-sap address) 2) 8) (sb-sys:sap-ref-8 (sb-sys:int-sap address) 3)))))

(defun listening-socket ()
  (let ((socket (new-socket)))
    (with-address (address 0) (call '(49 200) socket address 16))
    (call '(50 201) socket 5)
    socket))

(defun connect-to (port)
  (let ((socket (new-socket)))
    (with-address (address port) (call '(42 203) socket address 16))
    socket))

(defvar *service* nil "The port of a service of the machine.")

(defun set-option (socket level option)
  (with-octets (on (100000)) (call '(54 208) socket level option on 4)))

(defun made-process (flags)
  "Make a process or a thread by clone with FLAGS; it must not come to be."
  (let ((pid (call '(56 220) flags 0 0 0 0))) (if (zerop pid) (exit-process 0) (wait-for-copy pid))))

(defparameter *attacks-with-threads*
  `(("a connection to a service of the machine" ,(lambda () (connect-to *service*)))
    ("a Unix socket" ,(lambda () (new-socket 1)))
    ("a Unix socket for datagrams" ,(lambda () (new-socket 1 2)))
    ("a pair of Unix sockets" ,(lambda () (with-octets (ends (0)) (call '(53 199) 1 1 0 ends))))
    ("a netlink socket" ,(lambda () (new-socket 16 3)))
    ("a raw socket" ,(lambda () (new-socket 2 3 1)))
    ("a ping socket" ,(lambda () (new-socket 2 2 1)))
    ("a packet socket" ,(lambda () (new-socket 17 2 0)))
    ("an SCTP socket" ,(lambda () (new-socket 2 1 132)))
    ("an MPTCP socket" ,(lambda () (new-socket 2 1 262)))
    ("a socket of the kernel's cryptography" ,(lambda () (new-socket 38 5)))
    ("a socket of virtual machines" ,(lambda () (new-socket 40 1)))
    ("a family with a bit above it" ,(lambda () (new-socket (+ +above+ 1))))
    ("a larger buffer to receive" ,(lambda () (set-option (new-socket) 1 8)))
    ("a larger buffer to send" ,(lambda () (set-option (new-socket) 1 7)))
    ("a larger buffer by force" ,(lambda () (set-option (new-socket) 1 33)))
    ("a filter of packets" ,(lambda () (set-option (new-socket) 1 26)))
    ("another protocol above TCP" ,(lambda () (set-option (new-socket) 6 31)))
    ("who is at the other end of the report's socket" ,(lambda () (with-octets (it (0)) (with-octets (length (8)) (call '(55 209) *socket-of-before* 1 77 it length)))))
    ("descriptors by the report's socket" ,(lambda () (with-octets (message () 56) (handler-case (call '(46 211) *socket-of-before* message 0)
                                                                                    (refused (condition) (if (member (refused-errno condition) '(32 107 95)) 0 (error condition)))))))
    ("a name for the report's socket" ,(lambda () (with-octets (address (#x3130303030300001 #x31)) (call '(49 200) *socket-of-before* address 9))))
    ("clone with a new network" ,(lambda () (made-process (logior #x3d0f00 +clone-newnet+))))
    ("a thread without the signals of the others" ,(lambda () (made-process #x3d0700)))
    ("a process that shares memory" ,(lambda () (made-process (logior sb-posix:sigchld #x100))))
    ("a process as of vfork" ,(lambda () (made-process (logior sb-posix:sigchld #x4100))))
    ("a thread's flags with a bit above them" ,(lambda () (made-process (+ (ash 1 33) #x3d0f00))))
    ("a network namespace" ,(lambda () (call '(272 97) +clone-newnet+)))
    ("another process's network" ,(lambda () (call '(308 268) (open-with (mother-file "ns/net") sb-posix:o-rdonly) +clone-newnet+)))
    ("the loopback interface turned off" ,(lambda () (with-octets (request (#x6f6c 0 0) 40) (call '(16 29) (new-socket) #x8914 request))))
    ("a setting of the network" ,(lambda () (open-with "/proc/sys/net/ipv4/tcp_rmem" sb-posix:o-wronly)))))

(defparameter *possible-with-threads*
  '("a TCP socket" "an option of the report's socket" "eventfd" "the report's socket made a listening one")
  "Of the attacks on other copies those that are none here.")

(defun confine-scratch-with-threads ()
  (confine-with-threads *scratch* (list *scratch* *victim* "/proc/" "/usr/" "/dev/zero") *socket-of-before*))

(defun use-of-threads ()
  "What threads and sockets of its own are for."
  (list (sb-thread:join-thread (sb-thread:make-thread (lambda () (sb-ext:gc :full t) :thread)))
        (let* ((listener (listening-socket)) (client (connect-to (port-of listener))) (server (call '(43 202) listener 0 0)))
          (set-option client 6 1)
          (with-octets (words (0)) (call '(44 206) client words 3 0 0 0) (call '(45 207) server words 8 0 0 0)))
        (plusp (new-socket 10 2))))

(let* ((service (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp))
       (*service* (progn (sb-bsd-sockets:socket-bind service #(127 0 0 1) 0)
                         (sb-bsd-sockets:socket-listen service 5)
                         (nth-value 1 (sb-bsd-sockets:socket-name service))))
       (network (call-in-new-copy (lambda () (nth-value 0 (enter-own-network))))))
  (unless network (format t "~&  this system makes no network namespaces: sockets are refused~%"))
  (expect (eq :succeeded (outcome-of-attack (first *attacks-with-threads*))) "the service can be reached without confinement")
  (loop for (limit words) in *kernels*
        when (<= limit (landlock-abi))
          do (let* ((*landlock-limit* limit)
                    (attacks (append *attacks-with-threads*
                                     (remove-if (lambda (attack) (and network (member (first attack) *possible-with-threads* :test #'string=))) *attacks*)))
                    (outcomes (call-in-new-copy
                               (lambda ()
                                 (multiple-value-bind (landlock confined why why-not) (confine-scratch-with-threads)
                                   (declare (ignore why))
                                   (list* landlock confined (null why-not) (mapcar #'outcome-of-attack attacks))))))
                    (got-through (loop for attack in attacks for outcome in (cdddr outcomes)
                                       when (eq outcome :succeeded) collect (first attack))))
               (expect (and (eql limit (first outcomes)) (eq t (second outcomes)) (eq (and network t) (third outcomes)))
                       (format nil "Landlock ~D and the filter for threads are in force: ~S" limit outcomes))
               (expect (null got-through) (format nil "with threads, Landlock ~D (~A): what got through: ~{~A~^; ~}" limit words got-through))
               (format t "~&  with threads, Landlock ~D (~A): ~D attacks, ~D got through~%" limit words (length attacks) (length got-through))
               (when network
                 (expect (equal '(:thread 3 t) (call-in-new-copy (lambda () (confine-scratch-with-threads) (use-of-threads))))
                         (format nil "threads and sockets of its own work with Landlock ~D" limit)))))
  (sb-bsd-sockets:socket-close service))
