import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** Elements this far outside the window are painted already. */
const AHEAD = '120px'

/** Whether an element is in view; others are not painted. */
export function useVisible(of: RefObject<Element | null>): boolean {
  const isVisible = useSignal(false)
  useEffect(() => {
    if (of.current === null) return
    const watch = new IntersectionObserver((entries) => (isVisible.value = entries.at(-1)?.isIntersecting === true), {
      rootMargin: AHEAD,
    })
    watch.observe(of.current)
    return () => watch.disconnect()
  }, [])
  return isVisible.value
}
