import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags } from '../../define.ts'

const load = () => import('./run/config.ts')

export const configRoutes = buildRouteMap({
  docs: { brief: 'Configuration: check, show, schema' },
  routes: {
    check: command<CommonFlags>({
      brief: 'Check the config file; on an error print line:column and exit with 78',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await load()).checkConfig,
    }),
    show: command<CommonFlags>({
      brief: 'Print every value in effect and its source',
      examples: ['', '--json'],
      parameters: { flags: commonFlags },
      load: async () => (await load()).showConfig,
    }),
    schema: command<CommonFlags>({
      brief: 'Print the JSON Schema of the config file, for completion in editors',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await load()).printConfigSchema,
    }),
  },
})
