// Package proof makes servers prove that they know a secret before a client sends it.
//
// Any local user can listen on a port that a process has released, so a client that read an address from a file
// cannot know which program answers. [Require] starts each connection with a challenge:
//
//	client ── GET / with a nonce and HMAC(token, "client", nonce, address) ──▶ server
//	       ◀───────────── 204 with HMAC(token, "server", nonce, address) ──
//	       ── the request, with the token and its body, on the same connection ──▶
//
// A process that takes over the port later gets neither, because both share one TCP connection. The HMAC covers the
// address that the server sees, so another listener cannot relay the challenge. Over TLS, it covers exported keying
// material instead, so that the address may be translated on the way.
//
// The proof does not encrypt: anyone who can read the traffic can read the token.
package proof
