import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags } from '../../define.ts'

const load = () => import('./run/config.ts')

export const configRoutes = buildRouteMap({
  docs: { brief: 'Configuration: check, show, schema' },
  routes: {
    check: command<CommonFlags>({
      brief: 'Check the config file; exit 78 and line:column when it is wrong',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await load()).checkConfig,
    }),
    show: command<CommonFlags>({
      brief: 'Print every value in force and where it came from',
      examples: ['', '--json'],
      parameters: { flags: commonFlags },
      load: async () => (await load()).showConfig,
    }),
    schema: command<CommonFlags>({
      brief: 'Print the JSON Schema that editors complete from',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await load()).printConfigSchema,
    }),
  },
})
