import { type CommonFlags, command, commonFlags, flag } from '../../define.ts'

export const initCommand = command<CommonFlags & { host?: string; force?: boolean }>({
  brief: 'Write a commented config file (mode 0600)',
  examples: ['--host rpc.example.net --config example.toml'],
  parameters: {
    flags: {
      ...commonFlags,
      host: flag.text('Host name customers will use', 'NAME'),
      force: flag.switch('Replace an existing file'),
    },
  },
  load: async () => (await import('./run/init.ts')).init,
})

export const serveCommand = command<CommonFlags & { demo?: boolean }>({
  brief: 'Run all services of this build',
  details:
    'Without a configuration everything runs on loopback over an embedded chain, and the first start prints a demo handover card.',
  examples: [''],
  parameters: {
    flags: {
      ...commonFlags,
      demo: {
        kind: 'boolean',
        optional: true,
        brief: 'Make the demo subscription on first start (default: only without a config file)',
      },
    },
  },
  load: async () => (await import('../services/run/serve.ts')).serve,
})

export type StatusFlags = CommonFlags & { readonly watch?: boolean }

export const statusCommand = command<StatusFlags>({
  brief: 'What runs on this state folder, and how it is',
  details:
    'With --watch it is drawn again each second, also while the process is away; without a terminal one line for each change. q or Ctrl-C leaves.',
  examples: ['', '--json', '--watch'],
  parameters: { flags: { ...commonFlags, watch: flag.switch('Go on looking') } },
  load: async () => (await import('./run/status.ts')).status,
})

export const doctorCommand = command<CommonFlags>({
  brief: 'Check everything that commonly goes wrong, with the command that mends it',
  examples: ['', '--json'],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/doctor.ts')).doctor,
})

export const reloadCommand = command<CommonFlags>({
  brief: 'Read the configuration again; a bad file leaves the old one running',
  examples: [''],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/control.ts')).reload,
})

export const drainCommand = command<CommonFlags & { yes?: boolean }>({
  brief: 'Finish what is in flight and stop',
  examples: ['--yes'],
  parameters: { flags: { yes: flag.switch('Do not ask'), ...commonFlags } },
  load: async () => (await import('./run/control.ts')).drain,
})
