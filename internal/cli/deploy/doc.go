// Package deploy changes the version, processes and settings of a running app.
package deploy
