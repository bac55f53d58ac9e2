// Package tokens stores a console's access tokens in the data directory.
//
// The console rereads the file when it changes. Only digests of secrets are stored.
package tokens
