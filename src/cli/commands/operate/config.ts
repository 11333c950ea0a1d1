import { buildRouteMap } from '@stricli/core'
import { command } from '../../define.ts'

const load = () => import('./run/config.ts')

export const configRoutes = buildRouteMap({
  docs: { brief: 'Configuration: check, show, schema' },
  routes: {
    check: command({
      brief: 'Check the config file; on an error print line:column and exit with 78',
      examples: [''],
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
