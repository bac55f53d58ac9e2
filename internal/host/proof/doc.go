// Package proof has servers prove that they know a secret before a client sends it.
//
// Any user of a machine can listen on a port that a process has left. So a client that has a server's address from a
// file or an option does not know who answers there. [Require] makes each connection in clear text begin with a
// challenge, before the first request is written:
//
//	client ── GET / with a nonce and HMAC(token, "client", nonce, address) ──▶ server
//	       ◀───────────── 204 with HMAC(token, "server", nonce, address) ──
//	       ── the request, with the token and its body, on the same connection ──▶
//
// What holds:
//
//   - The proof and the requests use one TCP connection: a listener that takes the port later gets neither.
//   - The address is the one that the server itself sees, so a listener at another address cannot pass the challenge on
//     to the server and its answer back.
//   - A server proves itself to clients that know the token only, so others get nothing to guess tokens with.
//
// TLS with a verified certificate, and requests that are signed, need no such proof. It is no encryption: who can read
// the network's traffic can read the token.
package proof
