-- SPDX-License-Identifier: Apache-2.0
-- Laziness, maps, exceptions, and threads of the runtime.
import Control.Concurrent
import Control.Exception
import Data.List (foldl', sort)
import qualified Data.Map as M

collatz :: Int -> Int
collatz 1 = 0
collatz n = 1 + collatz (if even n then n `div` 2 else 3 * n + 1)

oneRound :: MVar Int -> Int -> IO ()
oneRound v q = do
  let m = foldl' (\a k -> M.insertWith (+) (collatz k) k a) M.empty [q + 1 .. q + 40]
  _ <- evaluate (M.foldr (+) 0 m + sum (take 5 (sort (map (`mod` 7) [q .. q + 50]))))
  r <- try (evaluate (q `div` (M.size m - M.size m))) :: IO (Either ArithException Int)
  _ <- forkIO (putMVar v (either (const 1) id r))
  _ <- takeMVar v
  return ()

main :: IO ()
main = do
  v <- newEmptyMVar
  mapM_ (oneRound v) [1 .. 100000000]
  putStrLn "done"
