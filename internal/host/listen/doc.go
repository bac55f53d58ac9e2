// Package listen opens the addresses and sockets that servers listen on.
//
// The bound address, not the given name, decides whether an address is local. A socket is renamed from a private folder
// once its permissions are set, so that other users cannot connect before.
package listen
