// Package listen opens the addresses and sockets that servers listen on.
//
//	TCP     an address, with localOnly one that only this machine can reach
//	Unix    a socket for its owner and the group of its folder
//	Merge   several listeners as one
//
// An address that is already taken returns [ErrInUse]. The bound address, not the given name, decides whether an
// address is local.
//
// A socket is created in a private folder and renamed once its permissions are set, so that other users cannot
// connect in between. Closing the listener removes it.
package listen
