// Package inspect reports the state and history of environments.
//
// If no environment is running, describe and doctor examine the one that 'tendril up' would start, and events and logs
// read the files of the last one.
package inspect
