import { buildRouteMap } from '@stricli/core'
import { argument, command, listFlags } from '../../define.ts'

const load = () => import('./run/plan.ts')

export const planRoutes = buildRouteMap({
  docs: { brief: 'Plans and their limits' },
  routes: {
    list: command({
      brief: 'List plans with their limits',
      examples: ['', '-o json'],
      flags: listFlags,
      load: async () => (await load()).listPlans,
    }),
    show: command({
      brief: 'Show a plan with every limit and method cost',
      examples: ['build'],
      args: [argument('PLAN', 'Plan name')],
      load: async () => (await load()).showPlan,
    }),
  },
})
