// Package listen opens the addresses and sockets that servers listen on.
//
//	TCP     an address; with localOnly one that no other machine reaches, whatever its name says
//	Unix    a socket for its owner and the group of its folder
//	Merge   several listeners as one, for a server that serves them all alike
//
// An address that is taken is [ErrInUse], so that a caller can tell it from one that is wrong. What is bound decides
// whether an address is local, and not the name that was given for it.
//
// A socket gets its permissions in a folder that only its owner can enter, and then its name: nobody else can connect
// in between. It is removed when its listener is closed.
package listen
