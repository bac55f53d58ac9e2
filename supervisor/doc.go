// Package supervisor runs the user's app and keeps it healthy.
package supervisor
