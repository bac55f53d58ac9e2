// Package peers reads the details of an environment's other instances from their consoles.
//
//	page, command -- ?instance=ID --> console -- Answer --> Peers -- proof, request --> console of that instance
//	                                                         |  record: address, certificate, host
//	                                                         '-- registry
//
// A peer is contacted only if its record is authenticated with the fleet key, and only at the address in that record:
//
//   - over TLS with the certificate whose fingerprint is in the record, or without TLS on this host's loopback
//     interface;
//   - at loopback and link-local addresses only if the record comes from this host;
//   - never by name, through a proxy, or after a redirect.
//
// Each connection starts with a mutual proof (package proof) of a secret derived from the fleet key and the contacted
// instance's ID.
//
// Peers have read access only. Responses are limited in size and, except for streams, in time.
package peers
