// Package bundle reads an Elastic Beanstalk source bundle.
//
// A bundle is a folder, or a zip archive of one, with an app and instructions for running it:
//
//	app.zip --> IsArchive, Unpack --> DIR/     all or nothing, never outside
//
//	DIR/
//	  Procfile               web: the app            -> Processes, Web
//	                         name: another process
//	  Buildfile              name: command           -> Build
//	  .ebextensions/*.config option_settings         -> Settings, Environment
//	                         Resources               -> Resources, Unsupported
//	                         container_commands      -> ContainerCommands
//	                         packages, files, ...    -> Machine
//	                         any other section       -> Unsupported
//	  env.yaml               OptionSettings          -> Settings, the strongest
//	                         EnvironmentLinks        -> Links
//	                         name, tier              -> Manifest
//	  .platform/hooks/STAGE/ programs                -> Hooks
//	  .platform/confighooks/ programs                -> ConfigHooks
//	  cron.yaml                                      -> Cron
//	  package.json, application.py, ...              -> Default, if there is no Procfile
//
//	Plan: prebuild hooks, Buildfile, container commands, predeploy hooks, start, postdeploy hooks
//
// [Open] reads all of it at once and starts nothing; the resulting [Bundle] is a snapshot.
//
// Setting values keep their spelling, regardless of their YAML type. The last setting of an option is in force:
// configuration files are read in byte order of their names, then env.yaml. Everything that Elastic Beanstalk would use
// and this package does not is listed in Unsupported. Errors, findings and String methods never contain values that
// look secret.
//
// An error contains the [Problem] of every bad file, with its line and a fix. Input that could overload a parser is
// rejected before parsing: too many tokens, deep nesting, expanding aliases. A folder without a Procfile is valid,
// because the command may come from elsewhere.
//
// Before unpacking an archive, its list of entries is checked. Written bytes are counted during unpacking, because
// headers may lie. Links are created last and resolved once, inside an [os.Root] that they cannot leave.
//
// The package runs no commands, expands no variables and does not validate option values. It ignores .ebignore.
package bundle
