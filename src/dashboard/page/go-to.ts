import { printRoute, type Route } from '../model/route.ts'

export function goTo(route: Route): void {
  location.hash = printRoute(route)
}
