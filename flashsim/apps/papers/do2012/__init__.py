"""Do, "The Role of Flash Memory in Database Management Systems" (thesis, Wisconsin, 2012): its claims, and what judges them."""
