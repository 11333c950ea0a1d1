import { type Signal, signal } from '@preact/signals'

/** The route in the fragment of the URL, followed as it changes. */
export function followHash<Route>(parseRoute: (hash: string) => Route): Signal<Route> {
  const route = signal(parseRoute(location.hash))
  addEventListener('hashchange', () => (route.value = parseRoute(location.hash)))
  return route
}
