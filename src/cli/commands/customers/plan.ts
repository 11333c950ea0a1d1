import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type CommonFlags,
  command,
  commonFlags,
  type ListFlags,
  listFlags,
  positional,
} from '../../define.ts'

const load = () => import('./run/plan.ts')

export const planRoutes = buildRouteMap({
  docs: { brief: 'Plans and their limits' },
  routes: {
    list: command<ListFlags>({
      brief: 'List plans with their limits',
      examples: ['', '-o json'],
      parameters: { flags: listFlags, aliases: { o: 'output' } },
      load: async () => (await load()).listPlans,
    }),
    show: command<CommonFlags, [string]>({
      brief: 'Show a plan with every limit and method cost',
      examples: ['build'],
      parameters: { flags: commonFlags, positional: positional(argument('PLAN', 'Plan name')) },
      load: async () => (await load()).showPlan,
    }),
  },
})
