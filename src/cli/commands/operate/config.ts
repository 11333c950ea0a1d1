import { buildRouteMap } from '@stricli/core'
import { STANDALONE_SECTIONS } from '../../../processes/compose/config/served.ts'
import { command, commonFlags, flag } from '../../define.ts'

const PROCESSES = ['serve', ...Object.keys(STANDALONE_SECTIONS)] as ['serve', ...(keyof typeof STANDALONE_SECTIONS)[]]

const load = () => import('./run/config.ts')

export const configRoutes = buildRouteMap({
  docs: { brief: 'Configuration: check, show, schema' },
  routes: {
    check: command({
      brief: 'Check the config file; on an error print line:column and exit with 78',
      details:
        'What the start of a process needs, with the secrets that it reads. Name a process of one service with --for: it needs its section also where that is off for `sluice serve`.',
      examples: [''],
      flags: {
        ...commonFlags,
        for: flag.choice('The process that is to start (default: the running one, else serve)', PROCESSES),
      },
      load: async () => (await load()).checkConfig,
    }),
    show: command({
      brief: 'Print every value in effect and its source',
      examples: ['', '--json'],
      load: async () => (await load()).showConfig,
    }),
    schema: command({
      brief: 'Print the JSON Schema of the config file, for completion in editors',
      examples: [''],
      load: async () => (await load()).printConfigSchema,
    }),
  },
})
