import { type Signal, signal } from '@preact/signals'
import { parseRoute, printRoute, type Route, type ViewName } from '../model/route.ts'

export function followHash(): Signal<Route> {
  const route = signal(parseRoute(location.hash))
  addEventListener('hashchange', () => (route.value = parseRoute(location.hash)))
  return route
}

export function goTo(route: Partial<Route> & { readonly view: ViewName }): void {
  location.hash = printRoute(route)
}
