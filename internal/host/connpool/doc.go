// Package connpool keeps unused client connections, and checks before reuse that the server has not closed them.
package connpool
