import { command, commonFlags, flag } from '../../define.ts'

export const initCommand = command({
  brief: 'Write a config file with every option and its default (mode 0600), and make the access store',
  details:
    'With --config the store is made only if --state is given too; the folder is then written into the file. A store that exists stays as it is.',
  examples: ['--host rpc.example.net --config example.toml', '--host rpc.example.net --config other.toml --state data'],
  flags: {
    config: flag.text('The new config file (default ./sluice.toml)', 'FILE'),
    state: flag.text('State folder (default ./.sluice)', 'DIR'),
    json: commonFlags.json,
    host: flag.text('Host name that customers connect to', 'NAME'),
    force: flag.switch('Replace an existing file'),
  },
  load: async () => (await import('./run/init.ts')).init,
})

export const statusCommand = command({
  brief: 'Show the state of the running process',
  details:
    'With --watch the view refreshes every second and waits while the process restarts; without a terminal it prints one line per change. Quit with q or Ctrl-C.',
  examples: ['', '--json', '--watch'],
  flags: { ...commonFlags, watch: flag.switch('Keep watching') },
  load: async () => (await import('./run/status.ts')).status,
})

export const doctorCommand = command({
  brief: 'Check machine, configuration, store and upstreams, and print a fix for each problem',
  examples: ['', '--json'],
  load: async () => (await import('./run/doctor.ts')).doctor,
})

export const reloadCommand = command({
  brief: 'Reload the configuration; an invalid file is refused and changes nothing',
  examples: [''],
  load: async () => (await import('./run/control.ts')).reload,
})

export const drainCommand = command({
  brief: 'Finish requests in flight and stop the process',
  examples: ['--yes'],
  flags: { yes: flag.switch('Skip the confirmation'), ...commonFlags },
  load: async () => (await import('./run/control.ts')).drain,
})
