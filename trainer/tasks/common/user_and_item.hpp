// SPDX-License-Identifier: Apache-2.0
// The usual names of columns of users and items.
#pragma once

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

inline constexpr TableColumn kUserAndItem[] = {
    {.is = "user",
     .headings = "user userid uid visitor visitorid customer customerid session sessionid reviewerid "
                 "person personid"},
    {.is = "item",
     .headings = "item itemid iid movie movieid product productid asin parentasin book bookid isbn song songid track "
                 "trackid artist artistid anime animeid article articleid news newsid business businessid"},
};

}  // namespace gpups::trainer
